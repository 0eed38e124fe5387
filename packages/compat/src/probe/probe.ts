import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import { emptyDomain, renderDomainJson, type Vmi } from '@virtwire/vm-model';
import { factsOf } from '../emulate/lines/lines.ts';
import { openReleaseSchema } from '../emulate/schema/release-schema.ts';
import { CompatError } from '../errors.ts';
import type { ReleaseLine } from '../release-line.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { type Finding, Findings } from './findings.ts';
import { leadLife } from './life.ts';
import { type EventSubject, tellEvents } from './notify.ts';
import { PeerGone, ProbePeer } from './peer.ts';
import { askQuestions } from './questions.ts';
import { throwAwayVmi } from './throw-away-vmi.ts';

/** What a probe found out. */
export interface ProbeResult {
  readonly findings: readonly Finding[];
  /** Release lines whose RPC set the peer has, as far as it was asked; empty for a set that no release has. */
  readonly lines: readonly ReleaseLine[];
}

/** How far a probe goes. */
export interface ProbeOptions {
  /** Lead a VM through its whole life: it is started, changed, killed and removed. Default false. */
  readonly isUnsafe?: boolean;
  /** The VM to do that with; a VM without disks and network when absent. */
  readonly vmi?: Vmi;
  /** Where the launcher may put a memory dump. Default `/var/run/kubevirt`. */
  readonly scratchDir?: string;
}

const NOT_ASKED = 'asked with --unsafe only';
const NOTIFY_RPCS = ['Info', 'HandleDomainEvent', 'HandleK8sEvent'];

function fits(line: ReleaseLine, findings: readonly Finding[]): boolean {
  const { cmdRpcs } = openReleaseSchema(factsOf(line).release.value);
  const names: readonly string[] = CMD_RPC_NAMES;
  return findings.every(({ rpc, verdict }) => {
    if (verdict === 'not asked' || !names.includes(rpc)) return true;
    return cmdRpcs.has(rpc) === (verdict !== 'missing');
  });
}

/** A peer that is given up is a finding, not a failure of the probe: what was seen before still counts. */
async function untilGone(findings: Findings, run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (caught) {
    if (!(caught instanceof PeerGone)) throw caught;
    findings.bad('(the peer)', `${caught.message}: the rest was not asked`);
    return false;
  }
}

/**
 * Plays a handler towards a live launcher and asks for every RPC.
 *
 * Without `isUnsafe` nothing is sent that could change a VM. With it, a VM is led through the whole contract and removed.
 *
 * @throws {CompatError} `ConnectFailed`; `BadOption` when the launcher has a VM already and none was named.
 */
export async function probeLauncher(socket: string, options: ProbeOptions = {}): Promise<ProbeResult> {
  const { isUnsafe = false, vmi, scratchDir = '/var/run/kubevirt' } = options;
  using peer = await ProbePeer.dial(socket);
  const findings = new Findings();
  const isComplete = await untilGone(findings, async () => {
    const known = await askQuestions(peer, socket, findings);
    if (!isUnsafe) return;
    if (known !== undefined && vmi === undefined) {
      const text = `the launcher at ${socket} runs ${known.namespace}/${known.name}: give its VMI, which will be removed`;
      throw new CompatError('BadOption', text);
    }
    await leadLife({ peer, findings, vmi: vmi ?? throwAwayVmi(), scratchDir }, known !== undefined);
  });
  const list = findings.list(['Info', ...CMD_RPC_NAMES], isUnsafe ? 'what came before failed' : NOT_ASKED);
  return { findings: list, lines: isComplete ? RELEASE_LINES.filter((line) => fits(line, list)) : [] };
}

function subjectOf(vmi: Vmi): EventSubject {
  const { namespace, name, uid } = vmi.metadata;
  const domain = emptyDomain();
  const ObjectMeta = { ...domain.ObjectMeta, namespace, name, uid };
  const Status = { ...domain.Status, Status: 'Shutoff' as const, Reason: 'Unknown' as const };
  return { domain: renderDomainJson({ ...domain, ObjectMeta, Status }), vm: { namespace, name, uid } };
}

/**
 * Plays a launcher towards a live notify server. Without `isUnsafe` only events are sent that handlers refuse or drop.
 *
 * @throws {CompatError} `ConnectFailed`.
 */
export async function probeNotifyServer(socket: string, options: ProbeOptions = {}): Promise<ProbeResult> {
  const { isUnsafe = false, vmi } = options;
  using peer = await ProbePeer.dial(socket);
  const findings = new Findings();
  const subject = isUnsafe ? subjectOf(vmi ?? throwAwayVmi()) : undefined;
  const isComplete = await untilGone(findings, () => tellEvents(peer, findings, subject));
  return { findings: findings.list(NOTIFY_RPCS, NOT_ASKED), lines: isComplete ? RELEASE_LINES : [] };
}
