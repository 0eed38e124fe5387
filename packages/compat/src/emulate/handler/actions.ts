import { type Domain, isConditionTrue, hasCondition, type Vmi } from '@virtwire/vm-model';

import type { CallOutcome, HandlerAction } from '../api.ts';
import type { HandlerFacts } from '../facts/line-facts.ts';
import { AGENT_CHANNEL } from '../launcher/domain-spec.ts';
import type { Fields } from '../schema/release-schema.ts';
import { finalizeOptions, hotplugOptions, migrationOptions, syncOptions, targetOptions } from './options.ts';
import type { Session } from './session.ts';

/** What an action works on. */
export interface ActionContext {
  readonly facts: HandlerFacts;
  readonly hasRpc: (rpc: string) => boolean;
  readonly vmi: Vmi;
  readonly session: Session;
  readonly expandDisks: boolean;
  readonly timeoutFactor: number;
  readonly outcomes: CallOutcome[];
  /** The last domain that the launcher told of. */
  domain(): Domain | undefined;
  /** @throws {Error} when it does not come. */
  waitFor(what: string, condition: () => boolean, timeoutMs: number): Promise<void>;
  /** Asks every launcher that the line lists. */
  listDomains(): Promise<void>;
}

const EVENT_TIMEOUT_MS = 10_000;
const DEFAULT_GRACE_S = 30;

/** Ends an action early; the call's outcome says why. */
class ActionFailure extends Error {
  override readonly name = 'ActionFailure';
}

/**
 * Runs an action: the calls of a handler in their order.
 *
 * @throws {Error} with the reason why the action failed.
 * @source captures README facts; wire.md 8
 */
export async function runAction(action: HandlerAction, context: ActionContext): Promise<void> {
  await ACTIONS[action](context);
}

type Run = (context: ActionContext) => Promise<void>;

/** A call on the long connection. @throws {ActionFailure} unless it went well. */
async function call(context: ActionContext, rpc: string, request: Fields): Promise<CallOutcome> {
  const client = await context.session.client(context.vmi, context.outcomes);
  const outcome = await client.call(rpc, request);
  context.outcomes.push(outcome);
  if (!outcome.ok) throw new ActionFailure(outcome.error ?? `${rpc} failed`);
  return outcome;
}

/** A call on a connection of its own, as REST calls and scrapers make it. */
async function ownCall(
  context: ActionContext,
  calls: readonly (readonly [rpc: string, request: Fields])[],
): Promise<void> {
  using client = await context.session.own(context.vmi, context.outcomes);
  const failures: string[] = [];
  for (const [rpc, request] of calls) {
    const outcome = await client.call(rpc, request);
    context.outcomes.push(outcome);
    if (!outcome.ok) failures.push(outcome.error ?? `${rpc} failed`);
  }
  if (failures.length > 0) throw new ActionFailure(failures.join('; '));
}

function vmiRequest({ vmi }: ActionContext, options: Fields = {}): Fields {
  return { vmi: { vmiJson: JSON.stringify(vmi) }, options };
}

function rest(rpc: string, more: Fields = {}): Run {
  return (context) => {
    // FreezeRequest has no options; fields that a message does not have are left out.
    return ownCall(context, [[rpc, { ...vmiRequest(context), ...more }]]);
  };
}

/** A call on the long connection with the VMI and empty options. */
function longCall(rpc: string): Run {
  return async (context) => {
    await call(context, rpc, vmiRequest(context));
  };
}

async function sync(context: ActionContext): Promise<void> {
  const { facts, vmi, session, expandDisks } = context;
  await session.client(vmi, context.outcomes);
  await session.knock(session.hasSynced ? 2 : 5);
  const options = syncOptions(facts, vmi, !session.hasSynced, expandDisks);
  session.hasSynced = true;
  await call(context, 'SyncVirtualMachine', vmiRequest(context, options));
}

function isAgentConnected(domain: Domain | undefined): boolean {
  const channel = domain?.Spec.Devices.Channels?.find(({ Target }) => Target?.Name === AGENT_CHANNEL);
  return channel?.Target?.State === 'connected';
}

async function guestInfo(context: ActionContext): Promise<void> {
  if (isAgentConnected(context.domain())) await call(context, 'GetGuestInfo', {});
}

async function update(context: ActionContext): Promise<void> {
  await sync(context);
  await guestInfo(context);
}

async function start(context: ActionContext): Promise<void> {
  const { session, vmi } = context;
  await context.waitFor('the launcher socket', () => hasSocket(session, vmi), EVENT_TIMEOUT_MS);
  await sync(context);
  await context.waitFor('the domain to run', () => context.domain()?.Status.Status === 'Running', EVENT_TIMEOUT_MS);
  await update(context);
}

function hasSocket(session: Session, vmi: Vmi): boolean {
  try {
    session.socket(vmi);
    return true;
  } catch {
    return false;
  }
}

function isOff(domain: Domain | undefined): boolean {
  const status = domain?.Status.Status ?? 'NoState';
  return status === 'Shutoff' || status === 'Crashed' || isGone(domain);
}

function isGone(domain: Domain | undefined): boolean {
  return domain?.ObjectMeta.deletionTimestamp !== undefined || domain === undefined;
}

/** Ping comes before each call that ends a VM: the cached connection may be dead. */
async function verified(context: ActionContext, rpc: string): Promise<void> {
  await call(context, 'Ping', {});
  await call(context, rpc, vmiRequest(context));
}

async function stop(context: ActionContext): Promise<void> {
  const graceMs =
    Number(context.vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_S) * 1_000 * context.timeoutFactor;
  // A handler knows what runs before it acts: it lists domains when it starts.
  if (context.domain() === undefined) await context.listDomains();
  if (!isOff(context.domain())) {
    await verified(context, 'ShutdownVirtualMachine');
    await guestInfo(context);
    if (!isOff(context.domain())) await verified(context, 'ShutdownVirtualMachine');
    const isInTime = await inTime(context, graceMs);
    if (!isInTime) return kill(context);
  }
  await deleteDomain(context);
}

async function inTime(context: ActionContext, graceMs: number): Promise<boolean> {
  try {
    await context.waitFor('the guest to be off', () => isOff(context.domain()), graceMs);
    return true;
  } catch {
    return false;
  }
}

async function kill(context: ActionContext): Promise<void> {
  await verified(context, 'KillVirtualMachine');
  await context.waitFor('the domain to be off', () => isOff(context.domain()), EVENT_TIMEOUT_MS);
  await deleteDomain(context);
}

async function deleteDomain(context: ActionContext): Promise<void> {
  await verified(context, 'DeleteVirtualMachine');
  await context.waitFor('the domain to be gone', () => isGone(context.domain()), EVENT_TIMEOUT_MS);
  if (context.facts.callsAgainAfterDelete.value) await deleteAgain(context);
  await context.session.forget(context.vmi.metadata.uid);
}

/** The last look at a VMI; the launcher may have ended meanwhile, which nobody minds. */
async function deleteAgain(context: ActionContext): Promise<void> {
  try {
    await ownCall(context, [
      ['Ping', {}],
      ['DeleteVirtualMachine', vmiRequest(context)],
    ]);
  } catch {
    return;
  }
}

async function metrics(context: ActionContext): Promise<void> {
  const { hasRpc } = context;
  const rpcs = ['GetDomainStats', 'GetFilesystems', 'GetDomainDirtyRateStats', 'GetQemuVersion'].filter(hasRpc);
  await ownCall(
    context,
    rpcs.map((rpc) => [rpc, {}]),
  );
}

/** Items of GetVMStats, each asked for by an empty message. */
const LIBVIRT_ITEMS = ['domainStats', 'dirtyRate'];
const AGENT_ITEMS = [
  ...['guestGetLoad', 'guestGetCpuStats', 'guestGetDiskStats', 'guestGetTime', 'guestGetVcpus'],
  ...['guestGetMemoryBlockInfo', 'guestGetUsers', 'guestGetOsInfo', 'guestGetDisks', 'guestGetHostName'],
  ...['guestGetTimezone', 'guestNetworkGetRoute', 'guestNetworkGetInterfaces', 'guestGetMemoryBlocks'],
];

const items = (names: readonly string[]): Fields => Object.fromEntries(names.map((name) => [name, {}]));

async function vmStats(context: ActionContext): Promise<void> {
  if (!context.hasRpc('GetVMStats')) return;
  await ownCall(context, [
    ['GetVMStats', items([...LIBVIRT_ITEMS, ...AGENT_ITEMS])],
    ['GetVMStats', items(['domainStats'])],
  ]);
}

async function guestQueries(context: ActionContext): Promise<void> {
  for (const rpc of ['GetGuestInfo', 'GetUsers', 'GetFilesystems']) await ownCall(context, [[rpc, {}]]);
}

async function reset(context: ActionContext): Promise<void> {
  if (!context.facts.hasResetRoute.value) throw new ActionFailure('404: the release has no route for a reset');
  await rest('ResetVirtualMachine')(context);
}

async function finalizeMigration(context: ActionContext): Promise<void> {
  const { facts, vmi, expandDisks } = context;
  const conditions = vmi.status?.conditions;
  const options = hotplugOptions(facts, expandDisks);
  if (context.hasRpc('SyncVirtualMachineCPUs') && hasCondition(conditions, 'HotVCPUChange')) {
    await tolerated(context, 'SyncVirtualMachineCPUs', vmiRequest(context, options));
  }
  if (context.hasRpc('SyncVirtualMachineMemory') && isConditionTrue(conditions, 'HotMemoryChange')) {
    await tolerated(context, 'SyncVirtualMachineMemory', vmiRequest(context, options));
  }
  await call(context, 'FinalizeVirtualMachineMigration', vmiRequest(context, finalizeOptions(facts)));
}

/** A failure is logged and told, and the migration completes all the same. @source wire.md 6 SyncVirtualMachineCPUs */
async function tolerated(context: ActionContext, rpc: string, request: Fields): Promise<void> {
  try {
    await call(context, rpc, request);
  } catch (caught) {
    if (!(caught instanceof ActionFailure)) throw caught;
  }
}

const ACTIONS: Readonly<Record<HandlerAction, Run>> = {
  start,
  update,
  pause: rest('PauseVirtualMachine'),
  unpause: rest('UnpauseVirtualMachine'),
  freeze: rest('FreezeVirtualMachine', { unfreezeTimeoutSeconds: 300 }),
  unfreeze: rest('UnfreezeVirtualMachine'),
  softReboot: rest('SoftRebootVirtualMachine'),
  reset,
  guestQueries,
  metrics,
  vmStats,
  memoryDump: async (context) => {
    const dumpPath = `/var/run/kubevirt/memdump/${context.vmi.metadata.name}.memory.dump`;
    await call(context, 'VirtualMachineMemoryDump', { ...vmiRequest(context), dumpPath });
  },
  hotplugHostDevices: longCall('HotplugHostDevices'),
  stop,
  kill,
  migrate: async (context) => {
    const request = { ...vmiRequest(context), options: migrationOptions(context.facts) };
    await call(context, 'MigrateVirtualMachine', request);
  },
  cancelMigration: longCall('CancelVirtualMachineMigration'),
  prepareMigrationTarget: async (context) => {
    const { facts, vmi, session, expandDisks } = context;
    await context.waitFor('the launcher socket', () => hasSocket(session, vmi), EVENT_TIMEOUT_MS);
    await session.client(vmi, context.outcomes);
    await session.knock(5);
    await call(context, 'SyncMigrationTarget', vmiRequest(context, targetOptions(facts, vmi, expandDisks)));
  },
  finalizeMigration,
  cleanUpMigrationTarget: (context) => tolerated(context, 'SignalTargetPodCleanup', vmiRequest(context)),
  resync: (context) => context.listDomains(),
};
