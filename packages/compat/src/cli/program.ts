import { CompatError } from '../errors.ts';
import { rulesCommand } from '../schema/rules-command.ts';
import { schemaCommand } from '../schema/schema-command.ts';
import { runHandlerAdapter, runLauncherAdapter } from './adapters.ts';
import { matrixCommand } from './matrix-command.ts';
import type { CompatProcess } from './process.ts';
import { probeCommand } from './probe-command.ts';
import { recordCommand } from './record-command.ts';
import { replayCommand } from './replay-command.ts';

interface CompatCommand {
  readonly usage: string;
  readonly summary: string;
  readonly run: (argv: readonly string[], io: CompatProcess) => Promise<number>;
}

/** Every command of `virtwire compat`, by name. */
const COMMANDS: Readonly<Record<string, CompatCommand>> = {
  matrix: {
    usage: `matrix [--only handler|launcher] [--releases v1.3,v1.9] [--scenarios first-start,kill]
         [--new-handler CMD] [--new-launcher CMD] [--junit F] [--json F] [--html F] [--concurrency N] [--quiet]`,
    summary: 'new handler with the launcher of every release, handler of every release with new launcher',
    run: matrixCommand,
  },
  schema: {
    usage: 'schema [--against v1.3,v1.9.0|all] [--json] PATH',
    summary: 'proto files or a descriptor set: what breaks for peers of which release',
    run: schemaCommand,
  },
  rules: {
    usage: 'rules [--json]',
    summary: 'what is sent to peers of which age, and what happens without it',
    run: rulesCommand,
  },
  replay: {
    usage: 'replay DIR…',
    summary: 'recorded traffic: every message decodes, comes back equal, and gets an equivalent answer',
    run: replayCommand,
  },
  probe: {
    usage: 'probe --socket S [--as handler|launcher] [--release v1.6] [--unsafe]',
    summary: 'what a live launcher (or, as a launcher, a live notify server) does with every RPC',
    run: probeCommand,
  },
  record: {
    usage: 'record --listen S --to S --out DIR [--release v1.6.1]',
    summary: 'stand between a live handler and launcher and record what they say, secrets masked',
    run: recordCommand,
  },
  'run-handler': {
    usage: 'run-handler',
    summary: "this version's handler as --new-handler of another version's matrix",
    run: (_argv, io) => runHandlerAdapter(io),
  },
  'run-launcher': {
    usage: 'run-launcher [FLAGS OF VIRT-LAUNCHER]',
    summary: "this version's launcher as --new-launcher of another version's matrix",
    run: runLauncherAdapter,
  },
};

/** What `--help` prints. */
function renderHelp(): string {
  const commands = Object.values(COMMANDS).map(({ usage, summary }) => `  ${usage}\n      ${summary}`);
  return `Usage: virtwire compat COMMAND

Checks handlers and launchers of KubeVirt against those of every release from v0.59 to v1.9.

${commands.join('\n')}

Exit codes: 0 no break found, 1 a break, 2 wrong usage`;
}

const isUsageError = (caught: unknown): boolean =>
  (caught instanceof CompatError && caught.code === 'BadOption') ||
  (caught instanceof Error && 'code' in caught && String(caught.code).startsWith('ERR_PARSE_ARGS'));

/**
 * Runs `virtwire compat …`.
 *
 * @param argv the words after `compat`.
 * @returns the exit code: 0, 1 for a break that was found, 2 for wrong usage.
 */
export async function runCompat(argv: readonly string[], io: CompatProcess): Promise<number> {
  const [name = '', ...rest] = argv;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined || rest.some((word) => word === '--help' || word === '-h')) {
    const isAsked = name === '' || name === 'help' || name === '--help' || name === '-h' || command !== undefined;
    if (isAsked) io.line(renderHelp());
    else io.error(`virtwire compat: unknown command ${name}\n\n${renderHelp()}`);
    return isAsked && name !== '' ? 0 : 2;
  }
  try {
    return await command.run(rest, io);
  } catch (caught) {
    io.error(`virtwire compat ${name}: ${caught instanceof Error ? caught.message : String(caught)}`);
    return isUsageError(caught) ? 2 : 1;
  }
}
