import { inspect, isDeepStrictEqual } from 'node:util';
import type { GuestBehaviour } from '@virtwire/libvirt/fake';
import type { CallOutcome, EmulatedHandler } from '../../emulate/api.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, failBy } from '../verdicts.ts';

/** The launcher's flag for the statistics that clusters leave off by default. */
export const COLLECTOR_FLAG = '--vm-stats-collector';

type Fields = Readonly<Record<string, unknown>>;

/** Fields of the answer that the guest's agent fills: the command, and what this guest says to it. @source wire.md 6 GetVMStats */
const AGENT_ITEMS: Readonly<Record<string, readonly [command: string, reply: unknown]>> = {
  guestGetLoad: ['guest-get-load', { load1m: 0.5, load5m: 0.25, load15m: 0.125 }],
  guestGetCpuStats: ['guest-get-cpustats', [{ type: 'linux', cpu: 0, user: 71, nice: 1, system: 23, idle: 940 }]],
  guestGetDiskStats: ['guest-get-diskstats', [{ name: 'vda', major: 253, minor: 0, stats: { 'read-ios': 17 } }]],
  guestGetTime: ['guest-get-time', 1_700_000_000_000_000],
  guestGetVcpus: ['guest-get-vcpus', [{ 'logical-id': 0, online: true, 'can-offline': false }]],
  guestGetMemoryBlockInfo: ['guest-get-memory-block-info', { size: 134_217_728 }],
  guestGetUsers: ['guest-get-users', [{ user: 'alice', 'login-time': 1_700_000_000.5 }]],
  guestGetOsInfo: ['guest-get-osinfo', { id: 'debian', name: 'Debian GNU/Linux', 'version-id': '12' }],
  guestGetDisks: ['guest-get-disks', [{ name: '/dev/vda', partition: false }]],
  guestGetHostName: ['guest-get-host-name', { 'host-name': 'asked-for-statistics' }],
  guestGetTimezone: ['guest-get-timezone', { zone: 'CET', offset: 3_600 }],
  guestNetworkGetRoute: ['guest-network-get-route', [{ iface: 'eth0', destination: '10.0.2.0', version: 4 }]],
  guestNetworkGetInterfaces: ['guest-network-get-interfaces', [{ name: 'eth0' }]],
  guestGetMemoryBlocks: ['guest-get-memory-blocks', [{ 'phys-index': 3, online: true }]],
};

/** gRPC's code of a call that took too long, as on a machine that is very busy. */
const DEADLINE_EXCEEDED = 4;
const MAX_ATTEMPTS = 3;
/** Version of the fake guest's agent. */
const AGENT_VERSION = '7.2.22';
const DIRTY_RATE_MBS = 37n;
const NO_AGENT = 'QEMU guest agent is not connected';
/** Parts of the domain's statistics that are measured, and so may be newer in the later of two answers. */
const MEASURED = ['DirtyRate', 'Load'];

/** Answers of an agent that has every command of the statistics. */
export const AGENT_WITH_STATS: NonNullable<GuestBehaviour['agent']> = Object.fromEntries(
  Object.values(AGENT_ITEMS).map(([command, reply]) => [command, () => reply]),
);

/** What the handler asks, first all items and then those of libvirt alone; undefined if its release has no such call. */
async function ask(
  scene: LauncherScene,
  handler: EmulatedHandler,
): Promise<readonly [all: CallOutcome, domainOnly: CallOutcome] | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { calls, error } = await scene.act(handler, 'vmStats');
    const [all, domainOnly] = calls.filter(({ rpc }) => rpc === 'GetVMStats');
    const isLate = [all, domainOnly].some((call) => call?.code === DEADLINE_EXCEEDED);
    // A measurement of a second and 14 questions to the agent; what came in time is kept for the next question.
    if (isLate && attempt < MAX_ATTEMPTS) continue;
    if (all !== undefined && domainOnly !== undefined && !isLate) return [all, domainOnly];
    if (error !== undefined) failBy(error, 'vmStats');
    return undefined;
  }
}

const print = (value: unknown): string => inspect(value, { breakLength: Infinity, depth: 4 });

function checkField(answer: Fields, field: string, expected: unknown): void {
  const isSame = isDeepStrictEqual(answer[field], expected);
  check(isSame, `GetVMStats: ${field} is ${print(answer[field])}, not ${print(expected)}`);
}

/** Everything was asked for: an item that was never asked for, or lost, shows. */
function checkFields(answer: Fields, expected: readonly string[]): void {
  const names = Object.keys(answer).toSorted();
  check(isDeepStrictEqual(names, expected.toSorted()), `GetVMStats answers ${names.join()}`);
}

const statsOf = (answer: Fields): Fields => {
  const part = answer['domainStats'] as { readonly response?: Fields; readonly domainStats?: Fields } | undefined;
  check(part?.response?.['success'] === true, `GetVMStats: the outcome of domainStats is ${print(part?.response)}`);
  return part.domainStats ?? {};
};

/** Without an agent each of its items fails with the reason, and the whole with all reasons; the others are there. */
export async function checkStatsWithoutAgent(scene: LauncherScene, handler: EmulatedHandler): Promise<void> {
  const [all, domainOnly] = (await ask(scene, handler)) ?? [];
  if (all === undefined || domainOnly === undefined) return;
  const answer = all.response ?? {};
  check(!all.ok, 'GetVMStats succeeded without an agent');
  checkFields(answer, ['response', 'domainStats', 'dirtyRateStats', 'guestAgentVersion', ...Object.keys(AGENT_ITEMS)]);
  const reasons: string[] = [];
  for (const [field, [command]] of Object.entries(AGENT_ITEMS)) {
    const { success, message = '' } = answer[field] as { readonly success?: boolean; readonly message?: string };
    check(success !== true && message.includes(NO_AGENT), `GetVMStats without an agent: ${field} says ${message}`);
    reasons.push(`agent data ${command}: ${message}`);
  }
  checkField(answer, 'response', { message: reasons.join('; ') });
  check(statsOf(answer)['Name'] === scene.domain.name, 'GetVMStats without an agent has no statistics of the domain');
  check(domainOnly.ok, `GetVMStats without items of the agent failed: ${domainOnly.error ?? ''}`);
}

/**
 * Each item holds what libvirt and the agent told, and nothing that was not asked for is answered.
 *
 * @param domainStats what GetDomainStats answered just before.
 */
export async function checkStats(scene: LauncherScene, handler: EmulatedHandler, domainStats: Fields): Promise<void> {
  const [all, domainOnly] = (await ask(scene, handler)) ?? [];
  if (all === undefined || domainOnly === undefined) return;
  if (!all.ok || !domainOnly.ok) failBy(all.error ?? domainOnly.error ?? '', 'vmStats');
  const answer = all.response ?? {};
  checkFields(answer, ['response', 'domainStats', 'dirtyRateStats', 'guestAgentVersion', ...Object.keys(AGENT_ITEMS)]);
  checkField(answer, 'response', { success: true });
  checkField(answer, 'guestAgentVersion', { success: true, message: AGENT_VERSION });
  checkField(answer, 'dirtyRateStats', { response: { success: true }, dirtyRateMbs: DIRTY_RATE_MBS });
  for (const [field, [, reply]] of Object.entries(AGENT_ITEMS)) {
    checkField(answer, field, { success: true, message: { return: reply } });
  }
  checkFields(domainOnly.response ?? {}, ['response', 'domainStats']);
  for (const outcome of [all, domainOnly]) {
    const told = statsOf(outcome.response ?? {});
    checkFields(told, Object.keys(domainStats));
    for (const key of Object.keys(domainStats).filter((name) => !MEASURED.includes(name))) {
      checkField(told, key, domainStats[key]);
    }
  }
}

/** Lets libvirt measure a rate that is told from one that was never measured. */
export function dirtyMemory(scene: LauncherScene): void {
  scene.domain.stats.set('dirtyrate.megabytes_per_second', DIRTY_RATE_MBS);
}
