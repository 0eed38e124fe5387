import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { factsOf } from '../emulate/lines/lines.ts';
import { openReleaseSchema } from '../emulate/schema/release-schema.ts';
import { CompatError } from '../errors.ts';
import { probeLauncher, probeNotifyServer } from '../probe/probe.ts';
import type { Finding } from '../probe/probe.ts';
import { parseLines } from './lines-option.ts';
import type { CompatProcess } from './process.ts';

const OPTIONS = {
  socket: { type: 'string' },
  as: { type: 'string', default: 'handler' },
  release: { type: 'string' },
  unsafe: { type: 'boolean', default: false },
} as const;

function isExpected({ rpc, verdict }: Finding, expected: ReadonlySet<string> | undefined): boolean {
  if (verdict === 'deviates') return false;
  return verdict !== 'missing' || !expected?.has(rpc);
}

/** Probes a live peer. @returns 1 when it deviates from the contract, or lacks an RPC of the release that it should be. */
export async function probeCommand(argv: readonly string[], io: CompatProcess): Promise<number> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  const { socket, as: role, unsafe } = values;
  if (socket === undefined) throw new CompatError('BadOption', 'probe: --socket is needed');
  if (role !== 'handler' && role !== 'launcher')
    throw new CompatError('BadOption', `--as ${role}: handler or launcher`);
  const [line] = parseLines(values.release) ?? [];
  const isSocket = statSync(socket, { throwIfNoEntry: false })?.isSocket();
  if (isSocket !== true) {
    const what = isSocket === undefined ? 'does not exist' : 'is no socket';
    throw new CompatError(
      'BadOption',
      `${socket} ${what}: name the socket of a launcher, or domain-notify.sock with --as launcher`,
    );
  }
  const { findings, lines } = await (role === 'handler' ? probeLauncher : probeNotifyServer)(socket, unsafe);
  const schema = line === undefined ? undefined : openReleaseSchema(factsOf(line).release.value);
  const expected = schema === undefined || role === 'launcher' ? undefined : new Set(schema.cmdRpcs.keys());
  for (const { rpc, verdict, detail } of findings) io.line(`${verdict.padEnd(10)} ${rpc.padEnd(34)} ${detail}`);
  if (role === 'handler') {
    io.line(`RPCs as in ${lines.length === 0 ? 'no release' : lines.join(', ')}, as far as they were asked for`);
  }
  return findings.every((finding) => isExpected(finding, expected)) ? 0 : 1;
}
