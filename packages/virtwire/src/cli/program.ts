import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { Command, CommanderError } from 'commander';
import { errorText, VirtwireError } from '../errors.ts';
import { DEFAULT_STATE_DIR, nodeLayout } from '../state/layout.ts';
import type { NodeLayout } from '../state/layout.ts';
import type { ConsoleInput } from './console.ts';
import { doctor } from './doctor-command.ts';
import { EXIT, EXIT_HELP, exitCodeOf } from './exit-codes.ts';
import { openConsole, pauseVm, stopVm, unpauseVm } from './lifecycle-commands.ts';
import { describeVm, listVms } from './list-commands.ts';
import type { LookRequest } from './list-commands.ts';
import { runNode } from './node-command.ts';
import type { Output } from './output.ts';
import { runVm } from './run-command.ts';
import { showTimeline } from './timeline-command.ts';

/** What the command line gets from its process. */
export interface CliProcess {
  readonly output: Output;
  readonly input: ConsoleInput;
  /** Standard input, for commands that read a document from it. */
  readonly standardInput: () => Readable;
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
}

interface Options {
  readonly stateDir: string;
  readonly json?: boolean;
  readonly console?: boolean;
  readonly force?: boolean;
  readonly html?: string;
  readonly manifests?: string;
  readonly options?: string;
  readonly context?: string;
  readonly defaults?: boolean;
  readonly out?: string;
}

type Action = (args: readonly string[], options: Options, layout: NodeLayout) => Promise<number> | number;

interface CommandSpec {
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  readonly options?: readonly (readonly [flags: string, text: string])[];
  readonly action: Action;
}

const JSON_OPTION = ['--json', 'print JSON'] as const;

const first = (args: readonly string[]): string => args[0] ?? '';

/** Commands that start VMs or change them. */
function changingCommands({ output, input, signals }: CliProcess): readonly CommandSpec[] {
  return [
    {
      usage: 'run <file>',
      summary: 'run the VM of a manifest until it ends; Ctrl-C shuts it down and removes everything',
      example: 'virtwire run examples/demo.yaml --console',
      options: [['--console', "join the guest's console once it runs (Ctrl-] leaves it)"]],
      action: (args, options, layout) =>
        runVm({ file: first(args), layout, console: options.console === true, output, input, signals }),
    },
    {
      usage: 'node',
      summary: 'keep a directory of VMs running, over restarts of this command too',
      example: 'virtwire node --manifests /etc/virtwire/vms',
      options: [['--manifests <dir>', 'directory of manifests (YAML or JSON); changes are taken up at once']],
      action: (_args, options, layout) => {
        if (!options.manifests) throw new VirtwireError('Usage', 'node: --manifests DIR is missing');
        return runNode({ manifests: options.manifests, layout, output, signals });
      },
    },
    {
      usage: 'console <name>',
      summary: "join the guest's serial console; Ctrl-] leaves it",
      example: 'virtwire console demo',
      action: (args, _options, layout) => openConsole({ target: first(args), layout, output, input }),
    },
    {
      usage: 'stop <name>',
      summary: 'shut a VM down and remove what belongs to it',
      example: 'virtwire stop demo --force',
      options: [['--force', 'kill the VM instead of asking the guest']],
      action: (args, options, layout) =>
        stopVm({ target: first(args), layout, output, signals, force: options.force === true }),
    },
    {
      usage: 'pause <name>',
      summary: "stop the guest's processors; its memory stays",
      example: 'virtwire pause demo',
      action: (args, _options, layout) => pauseVm({ target: first(args), layout, output }),
    },
    {
      usage: 'unpause <name>',
      summary: 'let a paused guest go on',
      example: 'virtwire unpause demo',
      action: (args, _options, layout) => unpauseVm({ target: first(args), layout, output }),
    },
  ];
}

/** Commands that only look. */
function lookingCommands({ output }: CliProcess): readonly CommandSpec[] {
  const look = (layout: NodeLayout, options: Options): LookRequest => ({ layout, json: options.json === true, output });
  return [
    {
      usage: 'ps',
      summary: 'list the VMs of this node',
      example: 'virtwire ps --json',
      options: [JSON_OPTION],
      action: (_args, options, layout) => listVms(look(layout, options)),
    },
    {
      usage: 'describe <name>',
      summary: 'tell everything about a VM: phases, conditions, network, volumes',
      example: 'virtwire describe default/demo',
      options: [JSON_OPTION],
      action: (args, options, layout) => describeVm(first(args), look(layout, options)),
    },
    {
      usage: 'timeline <name>',
      summary: "show where the time of a VM's last start went",
      example: 'virtwire timeline demo --html demo.html',
      options: [JSON_OPTION, ['--html <file>', 'write a page with the picture']],
      action: (args, options, layout) => showTimeline(first(args), { ...look(layout, options), html: options.html }),
    },
    {
      usage: 'doctor',
      summary: 'check what a node needs to run VMs, with the remedy for what is missing',
      example: 'virtwire doctor',
      options: [JSON_OPTION],
      action: (_args, options) => doctor({ json: options.json === true, output }),
    },
  ];
}

/** The command that shows a domain without a VM. */
function convertingCommand({ output, standardInput }: CliProcess): CommandSpec {
  return {
    usage: 'convert <vmi>',
    summary: 'print the libvirt domain that a launcher would define for a VMI (JSON or YAML; - for standard input)',
    example: 'virtwire convert vm.yaml --defaults --out json',
    options: [
      ['--defaults', 'complete the VMI first, as the cluster and its node agent do'],
      [
        '--options <file>',
        "the node agent's VirtualMachineOptions as protobuf JSON (default: those that ours would send)",
      ],
      [
        '--context <file>',
        'circumstances: hostArchitecture, blockVolumes, podCPUSet, env, ... (default: an ordinary node)',
      ],
      ['--out <format>', 'xml or json (default: xml)'],
    ],
    // It brings the launcher's converter along, which no other command has to wait for.
    action: async (args, options) => {
      const { convertCommand } = await import('./convert-command.ts');
      return convertCommand({
        vmi: first(args),
        options: options.options,
        context: options.context,
        defaults: options.defaults === true,
        out: options.out ?? 'xml',
        output,
        standardInput,
      });
    },
  };
}

/** `compat` is a program of its own, which main.ts starts; here it is only told. */
const COMPAT_HELP = `
  compat COMMAND      check handlers and launchers against every KubeVirt release (virtwire compat --help)
`;

const STATE_OPTION = ['--state-dir <dir>', 'where the node keeps its things', DEFAULT_STATE_DIR] as const;

function checkStateDir(path: string): void {
  if (path === '') throw new VirtwireError('Usage', '--state-dir is empty: name a directory');
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new VirtwireError('Usage', `--state-dir ${path}: no directory`);
  }
}

/** Wrong usage on one line, with where to look. */
function renderUsageError(text: string, command: string): string {
  const what = text
    .trim()
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '');
  return `virtwire: ${what}: see ${command} --help`;
}

function createProgram(cli: CliProcess, done: (code: number) => void): Command {
  const program = new Command('virtwire')
    .description('VMs on one node, without Kubernetes')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.output.line(text.trimEnd()),
      writeErr: (text) => cli.output.error(text.trimEnd()),
      outputError: (text, write) => write(renderUsageError(text, 'virtwire')),
    })
    .addHelpText('after', COMPAT_HELP + EXIT_HELP);
  for (const spec of [...changingCommands(cli), ...lookingCommands(cli), convertingCommand(cli)]) {
    const command = program
      .command(spec.usage)
      .description(spec.summary)
      .configureOutput({
        outputError: (text, write) => write(renderUsageError(text, `virtwire ${first(spec.usage.split(' '))}`)),
      })
      .option(...STATE_OPTION);
    for (const [flags, text] of spec.options ?? []) command.option(flags, text);
    command.addHelpText('after', `\nExample:\n  ${spec.example}\n${EXIT_HELP}`);
    command.action(async () => {
      const options = command.opts<Options>();
      checkStateDir(options.stateDir);
      done(await spec.action(command.args, options, nodeLayout(options.stateDir)));
    });
  }
  return program;
}

/**
 * Runs one command line.
 *
 * @param argv the words after the program's name.
 * @returns the exit code; failures were told in one line.
 */
export async function runCli(argv: readonly string[], cli: CliProcess): Promise<number> {
  let code: number = EXIT.ok;
  const program = createProgram(cli, (exit) => {
    code = exit;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (caught) {
    if (caught instanceof CommanderError) return caught.exitCode === 0 ? EXIT.ok : EXIT.usage;
    cli.output.error(`virtwire: ${errorText(caught)}`);
    return caught instanceof VirtwireError ? exitCodeOf(caught.code) : EXIT.failed;
  }
}
