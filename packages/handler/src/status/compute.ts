import { hasErrorCode } from '../errors.ts';
import { apiTime, isFinal, phaseOf } from '../model.ts';
import type { Condition, Vmi, VmiPhase, VmiStatus, VolumeStatus } from '../model.ts';
import { isAlive } from '../vmi/decide.ts';
import { calculatePhase } from '../vmi/phase.ts';
import { accessCredentialConditions } from './access-credentials.ts';
import type { StatusEvent, StatusInput } from './facts.ts';
import { trackingWithBackup } from './backup.ts';
import { agentConditions, isAgentConnected } from './guest-agent.ts';
import { fsFreezeStatus, guestOsInfo } from './guest-os.ts';
import { interfaceStatuses } from './interfaces.ts';
import { guestMemory } from './memory.ts';
import { migratability } from './migratable.ts';
import { pausedConditions } from './paused.ts';
import { emulationConditions } from './software-emulation.ts';
import { synchronizedConditions } from './synchronized.ts';
import { volumeStatuses } from './volumes.ts';

/** The next status, and what is said and done once it is written. */
export interface StatusResult {
  readonly status: VmiStatus;
  /** Events to record before the write. */
  readonly events: readonly StatusEvent[];
  /** Events of a new phase, recorded after the write. */
  readonly phaseEvents: readonly StatusEvent[];
  readonly requeueAfterMs: number | undefined;
  /** Why a sync error ends the VMI, as a line for the log; undefined when it does not. */
  readonly fatal: string | undefined;
}

const VOLUME_REFRESH_MS = 1_000;

const FATAL: readonly (readonly [string, string])[] = [
  ['CriticalNetwork', 'virt-launcher crashed due to a network error.'],
  ['SecureBootMismatch', 'virt-launcher does not support the Secure Boot setting.'],
  ['Irrecoverable', 'virt-launcher reached an irrecoverable error.'],
];

const PHASE_EVENTS: Readonly<Partial<Record<VmiPhase, StatusEvent>>> = {
  Running: { type: 'Normal', reason: 'Started', message: 'VirtualMachineInstance started.' },
  Succeeded: { type: 'Normal', reason: 'Stopped', message: 'The VirtualMachineInstance was shut down.' },
  Failed: { type: 'Warning', reason: 'Stopped', message: 'The VirtualMachineInstance crashed.' },
};

/** True when the agent has to be asked before the status is computed: its channel is open and the guest is there. */
export function needsGuestInfo(input: Pick<StatusInput, 'domain'>): boolean {
  return isAlive(input.domain) && isAgentConnected(input.domain);
}

/** A sync error that ends the VMI. @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1167 (handleSyncError) */
function fatalReason(vmi: Vmi, syncError: unknown): string | undefined {
  const found = FATAL.find(([code]) => hasErrorCode(syncError, code));
  return found === undefined ? undefined : `${found[1]} Updating VMI ${vmi.metadata.name} status to Failed`;
}

function withSizes(volumes: readonly VolumeStatus[], sizes: ReadonlyMap<string, number>): readonly VolumeStatus[] {
  return volumes.map((volume) => {
    const size = sizes.get(volume.name);
    return size === undefined ? volume : { ...volume, size };
  });
}

/** Sets a field, or leaves it out when there is no value. */
function setField<K extends keyof VmiStatus>(status: VmiStatus, key: K, value: VmiStatus[K] | undefined): void {
  if (value === undefined) Reflect.deleteProperty(status, key);
  else status[key] = value;
}

function setDomainFields({ vmi, domain }: StatusInput, status: VmiStatus): void {
  if (domain === undefined) return;
  setField(status, 'guestOSInfo', guestOsInfo(status.guestOSInfo, domain));
  setField(status, 'fsFreezeStatus', fsFreezeStatus(status.fsFreezeStatus, domain));
  if (status.changedBlockTracking !== undefined) {
    status.changedBlockTracking = trackingWithBackup(status.changedBlockTracking, domain);
  }
  const machine = domain.Spec.OS.Type.Machine;
  if (machine) status.machine = { ...status.machine, type: machine };
  if (domain.Spec.CurrentMemory !== undefined) {
    const memory = { ...vmi.status?.memory };
    const guestCurrent = guestMemory(domain);
    if (guestCurrent === undefined) delete memory.guestCurrent;
    else memory.guestCurrent = guestCurrent;
    status.memory = memory;
  }
}

function nextConditions(
  input: StatusInput,
  events: StatusEvent[],
  endsAsFailed: boolean,
): { readonly conditions: readonly Condition[]; readonly method: string } {
  const { vmi, domain, facts, config, nodeName } = input;
  const now = apiTime(input.nowMs);
  const credentials = accessCredentialConditions(vmi.status?.conditions ?? [], domain, now);
  events.push(...credentials.events);
  const migration = migratability(vmi, credentials.conditions, config, facts.hostCpuModel);
  events.push(...migration.events);
  const agent = agentConditions(vmi, migration.conditions, isAgentConnected(domain), facts.guestAgent, {
    versions: config.supportedGuestAgentVersions,
    now,
  });
  const paused = pausedConditions(vmi, agent, domain, { nodeName, now });
  const { hostArchitecture } = facts;
  const emulated = emulationConditions(vmi, paused, domain, { config, hostArchitecture, now });
  // What went wrong last stays readable in a VMI that ends because of it (FM-4.4).
  const isKept = endsAsFailed && input.syncError === undefined;
  const conditions = isKept ? emulated : synchronizedConditions(emulated, input.syncError, now);
  return { conditions, method: migration.method };
}

function setPhase(input: StatusInput, status: VmiStatus, phase: VmiPhase): readonly StatusEvent[] {
  if (phase === phaseOf(input.vmi)) return [];
  status.phase = phase;
  const entered = status.phaseTransitionTimestamps ?? [];
  if (!entered.some((entry) => entry.phase === phase)) {
    status.phaseTransitionTimestamps = [...entered, { phase, phaseTransitionTimestamp: apiTime(input.nowMs) }];
  }
  const event = PHASE_EVENTS[phase];
  return event === undefined ? [] : [event];
}

/**
 * Computes the next status of a VMI from its domain and the node's facts.
 *
 * Pure, and stable: when nothing has changed the result equals the status that went in. A final VMI stays as it is.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1097-1160
 */
export function computeStatus(input: StatusInput): StatusResult {
  const { vmi, domain, facts } = input;
  const old = vmi.status ?? {};
  if (isFinal(vmi)) return { status: old, events: [], phaseEvents: [], requeueAfterMs: undefined, fatal: undefined };
  const status: VmiStatus = { ...old };
  const events: StatusEvent[] = [];
  if (facts.selinuxContext !== undefined) status.selinuxContext = facts.selinuxContext;
  setDomainFields(input, status);
  let requeueAfterMs: number | undefined;
  const oldVolumes = old.volumeStatus ?? [];
  if (oldVolumes.length > 0) {
    const sized = withSizes(oldVolumes, facts.isoSizes);
    const result = volumeStatuses(vmi, sized, domain, facts.mountedVolumes, input.nowMs);
    setField(status, 'volumeStatus', result.volumes);
    events.push(...result.events);
    if (result.needsRefresh) requeueAfterMs = VOLUME_REFRESH_MS;
  }
  setField(status, 'interfaces', interfaceStatuses(vmi, domain, facts.podInterfaces));
  const next = calculatePhase(input);
  requeueAfterMs ??= next.requeueAfterMs;
  const { conditions, method } = nextConditions(input, events, next.phase === 'Failed');
  setField(status, 'conditions', conditions.length === 0 && old.conditions === undefined ? undefined : [...conditions]);
  status.migrationMethod = method;
  const fatal = fatalReason(vmi, input.syncError);
  const phaseEvents = setPhase(input, status, fatal === undefined ? next.phase : 'Failed');
  return { status, events, phaseEvents, requeueAfterMs, fatal };
}
