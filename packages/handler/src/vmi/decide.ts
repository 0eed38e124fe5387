import { isFinal, phaseOf } from '../model.ts';
import type { Domain, Vmi } from '../model.ts';
import { decideCleanup, decideShutdown } from './decide-stop.ts';
import { decideUpdate } from './decide-update.ts';
import { isDecentralizedSource, isMigrationInProgress, isMigrationRunning } from './migration-facts.ts';
import type { DomainFact, Observed } from './observed.ts';
import { calculatePhase, isDecentralizedTarget } from './phase.ts';
import type { Note, Plan, Step } from './steps.ts';

const STRANGER_NOT_READY_RETRY_MS = 1_000;
const STRANGER_RETRY_MS = 5_000;
const UNHEARD_RETRY_MS = 1_000;
/** How long a domain that is off may belong to a start under way. */
const SLOW_START_MS = 300_000;
const ALIVE_EXCEPT: ReadonlySet<string> = new Set(['Shutoff', 'Crashed', '']);

/** Text of the error that follows the end of a domain that cannot be saved. */
const IRRECOVERABLE = 'VMI is irrecoverable due to failed post-copy migration';

const debug = (message: string): Note => ({ level: 'debug', message });
const info = (message: string): Note => ({ level: 'info', message });
const trace = (message: string): Note => ({ level: 'trace', message });
const nothing = (...notes: Note[]): Plan => ({ notes, steps: [] });

/**
 * True when the domain belongs to an older VMI of the same name: it lives on, or its launcher is gone and what it left
 * is in the way of the new one (FM-3.10).
 */
export function isStranger(fact: DomainFact, vmi: Vmi): boolean {
  if (fact.state === 'present') return (fact.domain.Spec.Metadata.KubeVirt.UID ?? '') !== vmi.metadata.uid;
  return fact.state === 'absent' && fact.uid !== '' && fact.uid !== vmi.metadata.uid;
}

/** The facts of one pass with the domain resolved. */
export interface PassFacts {
  readonly observed: Observed;
  /** The VMI, or a reference with name and the best known UID. */
  readonly vmi: Vmi;
  readonly exists: boolean;
  readonly domain: Domain | undefined;
}

/** A domain that runs, or may run again without being started: anything but off, crashed or without status. */
export function isAlive(domain: Domain | undefined): boolean {
  return domain !== undefined && !ALIVE_EXCEPT.has(domain.Status.Status ?? '');
}

/** A VMI that is in no store any more, as far as it can be named. */
export function vmiReference(key: string, uid: string): Vmi {
  const at = key.indexOf('/');
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: key.slice(at + 1), namespace: at < 0 ? '' : key.slice(0, at), uid },
    spec: { domain: { devices: {}, resources: {} } },
    status: { guestOSInfo: {}, runtimeUser: 0 },
  };
}

function uidOfDomain({ domain }: Observed): string {
  return domain.state === 'present' ? (domain.domain.Spec.Metadata.KubeVirt.UID ?? '') : domain.uid;
}

function decideStranger(o: Observed, vmiUid: string, oldUid: string): Plan {
  if (o.strangerLauncher === 'not-initialized') {
    return {
      notes: [],
      steps: [{ kind: 'requeue', afterMs: STRANGER_NOT_READY_RETRY_MS, reason: 'old launcher is still coming up' }],
    };
  }
  if (o.strangerLauncher === 'responsive') {
    const reason = `the launcher of the old VMI ${oldUid} is still there`;
    return { notes: [], steps: [{ kind: 'requeue', afterMs: STRANGER_RETRY_MS, reason, isSafetyNet: true }] };
  }
  return {
    notes: [
      info(
        `Detected stale vmi ${oldUid} that still needs cleanup before new vmi ${vmiUid} with identical name/namespace can be processed`,
      ),
    ],
    steps: [
      { kind: 'finalCleanup', uid: oldUid },
      { kind: 'requeue', afterMs: STRANGER_RETRY_MS, reason: `old VMI ${oldUid} was cleaned up` },
    ],
  };
}

function isOwned(o: Observed, vmi: Vmi): boolean {
  return vmi.metadata.labels?.['kubevirt.io/nodeName'] === o.nodeName || vmi.status?.nodeName === o.nodeName;
}

/** True while a domain that is defined and not running yet belongs to a start under way (FM-4.2). */
function isSlowStart(o: Observed, vmi: Vmi, domain: Domain): boolean {
  const { Status: status, Reason: reason = '' } = domain.Status;
  if (status !== 'Shutoff' || (reason !== 'Unknown' && reason !== '') || phaseOf(vmi) !== 'Scheduled') return false;
  const entered = vmi.status?.phaseTransitionTimestamps?.find((entry) => entry.phase === 'Scheduled');
  const since = entered?.phaseTransitionTimestamp ?? vmi.metadata.creationTimestamp;
  return !since || o.nowMs - Date.parse(since) < SLOW_START_MS;
}

interface Flags {
  shutdown: boolean;
  delete: boolean;
  readonly notes: Note[];
}

function raise(flags: Flags, alive: boolean, what: { alive: string | undefined; off: string | undefined }): void {
  if (alive) flags.shutdown = true;
  else flags.delete = true;
  const message = alive ? what.alive : what.off;
  if (message !== undefined) flags.notes.push(debug(message));
}

function flagsOf({ observed, vmi, exists, domain }: PassFacts): Flags {
  const flags: Flags = { shutdown: false, delete: false, notes: [] };
  const alive = isAlive(domain);
  const isMarked = domain?.Spec.Metadata.KubeVirt.GracePeriod?.MarkedForGracefulShutdown === true;
  if (isMarked && exists && phaseOf(vmi) === 'Running') {
    raise(flags, alive, { alive: 'Shutting down due to graceful shutdown signal.', off: undefined });
  }
  if (!exists) {
    raise(flags, alive, {
      alive: 'Shutting down domain for deleted VirtualMachineInstance object.',
      off: 'Deleting domain for deleted VirtualMachineInstance object.',
    });
  } else if (vmi.metadata.deletionTimestamp) {
    raise(flags, alive, {
      alive: 'Shutting down domain for VirtualMachineInstance with deletion timestamp.',
      off: 'Deleting domain for VirtualMachineInstance with deletion timestamp.',
    });
  }
  if (exists && isFinal(vmi)) {
    flags.delete = true;
    flags.notes.push(debug('Removing domain and ephemeral data for finalized vmi.'));
  }
  const isOff = domain !== undefined && !alive && !(exists && isFinal(vmi));
  if (isOff && !isSlowStart(observed, vmi, domain)) {
    flags.delete = true;
    flags.notes.push(debug('Deleting inactive domain for vmi.'));
  }
  return flags;
}

function situation({ vmi, exists, domain }: PassFacts): Note {
  const left = exists ? `VMI is in phase: ${phaseOf(vmi)}` : 'VMI does not exist';
  const { Status: status = '', Reason: reason = '' } = domain?.Status ?? {};
  return info(
    `${left} | ${domain === undefined ? 'Domain does not exist' : `Domain status: ${status}, reason: ${reason}`}`,
  );
}

function decideWork(facts: PassFacts, flags: Flags, update: boolean): Plan {
  const { domain } = facts;
  const isIrrecoverable = domain?.Status.Status === 'Paused' && domain.Status.Reason === 'PostcopyFailed';
  if (flags.shutdown) return { notes: [debug('Processing shutdown.')], steps: decideShutdown(facts, true) };
  if (isIrrecoverable) {
    return {
      notes: [debug(`Processing a destruction of an irrecoverable domain - ${IRRECOVERABLE}.`)],
      steps: [...decideShutdown(facts, false), { kind: 'fail', code: 'Irrecoverable', message: IRRECOVERABLE }],
    };
  }
  if (flags.delete) return { notes: [debug('Processing deletion.')], steps: decideCleanup(facts) };
  if (update) return { notes: [debug('Processing vmi update')], steps: decideUpdate(facts) };
  return nothing(debug('No update processing required'));
}

/** Nothing is done to a VM whose launcher was not heard yet, but to look again; its start has a limit all the same. */
function waitForAnswer(o: Observed, vmi: Vmi): Step[] {
  if (isFinal(vmi)) return [];
  const reason = 'the launcher was not heard yet';
  const again: Step = { kind: 'requeue', afterMs: UNHEARD_RETRY_MS, reason, isSafetyNet: true };
  return o.launcher === 'not-initialized' ? [{ kind: 'trackLauncher' }, again] : [again];
}

/** Phase-dependent part of a pass. @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1433-1600 (sync) */
function decideSync(facts: PassFacts): Plan {
  const { observed: o, vmi, exists, domain } = facts;
  const notes: Note[] = [debug(`Processing event ${o.key}`)];
  if (o.domain.state === 'unknown' || domain?.Status.Status === 'Unknown') {
    const message = `Domain has Unknown status (virt-launcher unreachable), skipping processing for ${o.key}`;
    const steps: Step[] = o.domain.state === 'unknown' && exists ? waitForAnswer(o, vmi) : [];
    // One that was never heard is asked again every second, which is nobody's news.
    const level = o.domain.state === 'unknown' ? 'debug' : 'warn';
    return { notes: [...notes, { level, message }], steps };
  }
  notes.push(situation(facts));
  const flags = flagsOf(facts);
  notes.push(...flags.notes);
  const steps: Step[] = [];
  let update = false;
  if (exists && !isFinal(vmi)) {
    const next = calculatePhase({ vmi, domain, launcher: o.launcher });
    if (phaseOf(vmi) === 'Scheduled' && domain === undefined) steps.push({ kind: 'trackLauncher' });
    if (next.requeueAfterMs !== undefined) {
      steps.push({ kind: 'requeue', afterMs: next.requeueAfterMs, reason: 'the launcher is not there yet' });
    }
    update = next.phase === phaseOf(vmi);
  }
  if (exists && isFinal(vmi) && !isAlive(domain)) steps.push({ kind: 'runHook', point: 'PostVMStop' });
  const work = decideWork(facts, flags, update);
  steps.push(...work.steps);
  if (exists) steps.push({ kind: 'writeStatus' });
  return { notes: [...notes, ...work.notes], steps };
}

/**
 * Decides one pass over a VMI: the order of the three branches is shut down because of deletion, clean up what has
 * stopped, then update and first start.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:321-437 (execute)
 */
export function decideVmi(o: Observed): Plan {
  const notes: Note[] = [];
  const steps: Step[] = [];
  if (o.vmi === undefined) steps.push({ kind: 'dropExpectation' });
  else if (o.isExpectationOpen) return nothing();
  const domain = o.domain.state === 'present' ? o.domain.domain : undefined;
  const cachedUid = uidOfDomain(o);
  if (o.vmi === undefined && cachedUid !== '') notes.push(info('Using cached UID for vmi found in domain cache'));
  const exists = o.vmi !== undefined;
  const vmi = o.vmi ?? vmiReference(o.key, cachedUid === '' ? o.recordedUid : cachedUid);

  if (exists && isStranger(o.domain, vmi)) return decideStranger(o, vmi.metadata.uid, cachedUid);
  const facts: PassFacts = { observed: o, vmi, exists, domain };
  if (domain?.Status.Status === 'Shutoff' && domain.Status.Reason === 'Migrated') {
    return { notes: [...notes, trace('detected orphan vmi')], steps: decideCleanup(facts) };
  }
  if (exists && isMigrationRunning(vmi, o.nowMs) && phaseOf(vmi) === 'Failed') {
    notes.push(info(`cleaning up VMI key ${o.key} as migration is in progress and the vmi is failed`));
    steps.push({ kind: 'finalCleanup', uid: vmi.metadata.uid });
  }
  const skip = exists ? reasonToSkip(o, vmi, domain) : undefined;
  if (skip !== undefined) return { notes: [...notes, trace(skip)], steps };
  const sync = decideSync(facts);
  return { notes: [...notes, ...sync.notes], steps: [...steps, ...sync.steps], isSync: true };
}

function reasonToSkip(o: Observed, vmi: Vmi, domain: Domain | undefined): string | undefined {
  if (!vmi.metadata.deletionTimestamp && isMigrationInProgress(vmi, domain)) {
    return `ignoring key ${o.key} as migration is in progress`;
  }
  if (!isOwned(o, vmi)) return 'ignoring vmi as it is not owned by this node';
  if (isDecentralizedSource(vmi) && !isDecentralizedTarget(vmi)) return 'ignoring vmi as it is a migration source';
  return undefined;
}
