import { readFileSync, statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseVmiJson, type Vmi } from '@virtwire/vm-model';
import { factsOf } from '../emulate/lines/lines.ts';
import { openReleaseSchema } from '../emulate/schema/release-schema.ts';
import { CompatError } from '../errors.ts';
import { type ProbeOptions, probeLauncher, probeNotifyServer } from '../probe/probe.ts';
import type { Finding } from '../probe/findings.ts';
import { parseLines } from './lines-option.ts';
import type { CompatProcess } from './process.ts';

const OPTIONS = {
  socket: { type: 'string' },
  as: { type: 'string', default: 'handler' },
  release: { type: 'string' },
  unsafe: { type: 'boolean', default: false },
  vmi: { type: 'string' },
  scratch: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

function isExpected({ rpc, verdict }: Finding, expected: ReadonlySet<string> | undefined): boolean {
  if (verdict === 'deviates') return false;
  return verdict !== 'missing' || !expected?.has(rpc);
}

/** The VMI of a file, as `kubectl get vmi -o json` prints it. */
function readVmi(path: string): Vmi {
  try {
    const vmi = parseVmiJson(readFileSync(path, 'utf8'));
    const { name, namespace, uid } = vmi.metadata as Partial<Vmi['metadata']>;
    if (!name || !namespace || !uid) throw new CompatError('BadOption', 'its metadata has no name, namespace or uid');
    return vmi;
  } catch (caught) {
    const reason = caught instanceof Error ? caught.message : String(caught);
    throw new CompatError('BadOption', `--vmi ${path}: ${reason}`, { cause: caught });
  }
}

function requireSocket(socket: string): void {
  const isSocket = statSync(socket, { throwIfNoEntry: false })?.isSocket();
  if (isSocket === true) return;
  const what = isSocket === undefined ? 'does not exist' : 'is no socket';
  const remedy = 'name the socket of a launcher, or domain-notify.sock with --as launcher';
  throw new CompatError('BadOption', `${socket} ${what}: ${remedy}`);
}

/** The RPCs that a release has; undefined for none that was named. */
function rpcsOf(release: string | undefined, role: string): ReadonlySet<string> | undefined {
  const [line, ...more] = parseLines(release) ?? [];
  if (more.length > 0) throw new CompatError('BadOption', `--release ${release ?? ''}: one release line`);
  if (line === undefined) return undefined;
  const { cmdRpcs, notifyRpcs } = openReleaseSchema(factsOf(line).release.value);
  return new Set((role === 'handler' ? cmdRpcs : notifyRpcs).keys());
}

/** Probes a live peer. @returns 1 when it deviates from the contract, or lacks an RPC of the release that it should be. */
export async function probeCommand(argv: readonly string[], io: CompatProcess): Promise<number> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  const { socket, as: role, unsafe: isUnsafe, vmi, scratch } = values;
  if (socket === undefined) throw new CompatError('BadOption', '--socket is needed');
  if (role !== 'handler' && role !== 'launcher') {
    throw new CompatError('BadOption', `--as ${role}: handler or launcher`);
  }
  const expected = rpcsOf(values.release, role);
  const options: ProbeOptions = {
    isUnsafe,
    ...(vmi === undefined ? {} : { vmi: readVmi(vmi) }),
    ...(scratch === undefined ? {} : { scratchDir: scratch }),
  };
  requireSocket(socket);
  const { findings, lines } = await (role === 'handler' ? probeLauncher : probeNotifyServer)(socket, options);
  if (values.json) io.line(JSON.stringify({ socket, role, isUnsafe, lines, findings }));
  else {
    for (const { rpc, verdict, detail } of findings) io.line(`${verdict.padEnd(10)} ${rpc.padEnd(34)} ${detail}`);
    if (role === 'handler') {
      io.line(`RPCs as in ${lines.length === 0 ? 'no release' : lines.join(', ')}, as far as they were asked for`);
    }
  }
  return findings.every((finding) => isExpected(finding, expected)) ? 0 : 1;
}
