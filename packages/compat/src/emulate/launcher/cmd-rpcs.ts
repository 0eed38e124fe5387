import { parseJson, parseVmiJson, type Vmi } from '@virtwire/vm-model';

import type { LauncherFacts } from '../facts/line-facts.ts';
import type { Fields } from '../schema/release-schema.ts';
import { guestFilesystems, guestInfo } from './guest.ts';
import { ProcessCrash, Refusal } from './outcome.ts';
import { renderStats } from './stats.ts';
import { execInGuest, requireAgent, requireNamedDomain } from './guest-programs.ts';
import { vmStats } from './vm-stats.ts';
import type { Vm } from './vm.ts';
import { requireTypes } from './vmi-types.ts';
import { requireBlockTracking, runBackup } from './vm-backup.ts';
import type { VmMigration } from './vm-migration.ts';

/** What the RPCs of a launcher work on. */
export interface CmdContext {
  readonly facts: LauncherFacts;
  readonly vm: Vm;
  readonly migration: VmMigration;
  readonly podName: string;
  readonly collectsStats: boolean;
  /** The domain document as the line prints it; empty without a domain. */
  renderDomain(): string;
  /** The target's process is told to end before its domain arrives. */
  exitEarly(): void;
}

const NO_VMI_TEXT = 'No valid vmi object present in command server request';

/**
 * Answers a cmd RPC as a launcher does.
 *
 * @returns the fields of the answer beside its outcome.
 * @throws {Refusal} for success=false, {StatusFailure} for a gRPC error, {ProcessCrash} for the end of the process.
 * @source wire.md 6, 11
 */
export async function answerCmd(
  context: CmdContext,
  rpc: { readonly name: string; readonly hasVmi: boolean },
  request: Fields,
): Promise<Fields> {
  const vmi = rpc.hasVmi ? readVmi(context, rpc.name, request) : EMPTY_VMI;
  const query = QUERIES[rpc.name];
  if (query !== undefined) return query(context, request);
  const command = COMMANDS[rpc.name];
  if (command === undefined) throw new Refusal(`emulated launchers do not answer ${rpc.name}`);
  await command(context, request, vmi);
  return {};
}

const EMPTY_VMI = parseVmiJson('{}');

function readVmi({ facts }: CmdContext, rpc: string, request: Fields): Vmi {
  const message = request['vmi'] as { readonly vmiJson?: Uint8Array } | undefined;
  if (message === undefined && facts.crashesWithoutVmi.value) throw new ProcessCrash(`${rpc} without vmi`);
  const text = textOf(message?.vmiJson);
  try {
    if (text === '') throw new Refusal(NO_VMI_TEXT);
    const vmi = parseVmiJson(text);
    requireTypes(vmi);
    return vmi;
  } catch (caught) {
    throw new Refusal(NO_VMI_TEXT, { cause: caught });
  }
}

function textOf(bytes: unknown): string {
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('utf8') : '';
}

function readJson(bytes: unknown, absent: string, invalid: (reason: string) => string): Fields | null {
  const text = textOf(bytes);
  if (text === '') throw new Refusal(absent);
  try {
    return parseJson(text) as Fields | null;
  } catch (caught) {
    // The words are Go's.
    throw new Refusal(invalid(caught instanceof Error ? caught.message : String(caught)), { cause: caught });
  }
}

function optionsOf(request: Fields): Fields {
  return (request['options'] ?? {}) as Fields;
}

/** RPCs that say no more than success. */
const COMMANDS: Readonly<Record<string, (context: CmdContext, request: Fields, vmi: Vmi) => void | Promise<void>>> = {
  Ping: () => undefined,
  SyncVirtualMachine: ({ vm }, request, vmi) => {
    const options = optionsOf(request);
    return vm.sync(vmi, {
      disksInfo: (options['DisksInfo'] ?? {}) as Readonly<Record<string, Fields>>,
      attachments: options['interfaceDomainAttachment'] as Readonly<Record<string, string>> | undefined,
      expandDisks: options['ExpandDisksEnabled'] === true,
      clusterExpandDisks: (options['clusterConfig'] as Fields | undefined)?.['ExpandDisksEnabled'] === true,
    });
  },
  PauseVirtualMachine: ({ vm }) => vm.pause(),
  UnpauseVirtualMachine: ({ vm }) => vm.unpause(),
  FreezeVirtualMachine: ({ vm }) => vm.freeze(),
  UnfreezeVirtualMachine: ({ vm }) => vm.unfreeze(),
  ResetVirtualMachine: ({ vm }) => vm.reset(),
  SoftRebootVirtualMachine: ({ vm }, _request, vmi) => vm.softReboot(vmi),
  ShutdownVirtualMachine: ({ vm }) => vm.shutdown(),
  KillVirtualMachine: ({ vm }) => vm.kill(),
  DeleteVirtualMachine: ({ vm }) => vm.undefine(),
  MigrateVirtualMachine: ({ migration }, request, vmi) => {
    const absent = 'migration options object not present in command server request';
    const invalid = (reason: string): string =>
      `no valid migration options object present in command server request: ${reason}`;
    migration.start({ vmi, options: readJson(request['options'], absent, invalid) });
  },
  CancelVirtualMachineMigration: ({ migration }) => migration.cancel(),
  SyncMigrationTarget: ({ migration }, _request, vmi) => migration.prepare(vmi),
  SignalTargetPodCleanup: (context, _request, vmi) => {
    const { podName, vm } = context;
    const isMine = podName !== '' && vmi.status?.migrationState?.targetPod === podName;
    if (isMine && vm.domain === undefined) context.exitEarly();
  },
  FinalizeVirtualMachineMigration: ({ migration }, request) => migration.finalize(request['options'] !== undefined),
  HotplugHostDevices: ({ vm }, _request, vmi) => vm.plugHostDevices(vmi),
  SyncVirtualMachineCPUs: ({ vm }, _request, vmi) => vm.setVcpus(vmi),
  SyncVirtualMachineMemory: ({ vm }, _request, vmi) => vm.setMemory(vmi),
  VirtualMachineMemoryDump: ({ vm }, request) => vm.dumpMemory(text(request['dumpPath'])),
  BackupVirtualMachine: ({ vm }, request, vmi) => {
    requireBlockTracking(vmi, 'Backup failed');
    const absent = 'backup options object not present in command server request';
    runBackup(
      vm,
      readJson(request['options'], absent, (reason) => `${absent}: ${reason}`),
    );
  },
  GuestPing: pingGuest,
  InjectLaunchSecret: injectSecret,
  RedefineCheckpoint: (_context, request, vmi) => {
    requireBlockTracking(vmi, 'Redefine checkpoint failed:');
    const invalid = (reason: string): string => `Redefine checkpoint failed: invalid checkpoint info: ${reason}`;
    readJson(request['checkpoint'], invalid('unexpected end of JSON input'), invalid);
  },
};

/** RPCs that answer something. */
const QUERIES: Readonly<Record<string, (context: CmdContext, request: Fields) => Fields>> = {
  GetDomain: (context) => ({ domain: context.renderDomain() }),
  GetDomainStats: domainStats,
  GetGuestInfo: ({ vm, facts }) => ({
    guestInfoResponse: guestInfo(vm.isAgentConnected, vm.isFrozen, facts.filesystemsHaveDisks.value),
  }),
  // Nobody is logged in.
  GetUsers: () => ({ guestUserListResponse: '[]' }),
  GetFilesystems: ({ vm, facts }) => ({
    guestFilesystemsResponse: JSON.stringify(
      vm.isAgentConnected ? guestFilesystems(facts.filesystemsHaveDisks.value) : [],
    ),
  }),
  Exec: ({ vm, facts }, request) => execInGuest(vm, facts, request),
  GetQemuVersion: () => ({ version: 'QEMU 10.0.13' }),
  GetSEVInfo: () => {
    throw libvirtError(84, 'Operation not supported: QEMU does not support SEV guest');
  },
  GetLaunchMeasurement: () => {
    throw new Refusal('open : no such file or directory');
  },
  GetDomainDirtyRateStats: ({ vm }) => {
    const isUp = vm.domain?.status === 'Running' || vm.domain?.status === 'Paused';
    const reason = 'failed to get domain dirty rate stats: failed to get dirty rate stats: %!w(<nil>)';
    if (!isUp) throw new Refusal(reason);
    return { dirtyRateMbs: 2n };
  },
  GetScreenshot: ({ vm }) => {
    vm.requireDomain();
    return { mime: 'image/png', data: PNG };
  },
  GetVMStats: (context, request) => vmStats(context, request, () => domainStats(context)),
};

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function libvirtError(code: number, text: string): Refusal {
  return new Refusal(`LibvirtError(Code=${code}, Domain=10, Message='${text}')`);
}

/** @source releases.json eras.domainStatsShape */
function domainStats({ vm, facts }: CmdContext): Fields {
  const { domain } = vm;
  if (domain !== undefined) return { domainStats: renderStats(domain.spec, facts.statsKeys.value) };
  const without = facts.statsWithoutDomain.value;
  if (without === 'failure') throw new Refusal('empty DomainStats');
  return { domainStats: without === 'null' ? 'null' : '' };
}

/** @source wire.md 6 GuestPing */
function pingGuest({ vm, facts }: CmdContext, request: Fields): void {
  const isKnown = vm.domain !== undefined && request['domainName'] === vm.name;
  if (!isKnown && facts.guestPingWithoutDomain.value === 'success') return;
  requireNamedDomain(vm, request['domainName']);
  if (!vm.isAgentConnected && facts.k8sEvents.value.includes('GuestAgentPingFailed')) {
    const message = `GuestAgentPing probe failed for VMI ${vm.deps.identity.name}`;
    vm.deps.onK8sEvent('GuestAgentPingFailed', message);
  }
  requireAgent(vm);
}

function injectSecret(_context: CmdContext, request: Fields): never {
  const absent = 'No valid secret options present in command server request';
  const options = readJson(request['options'], absent, () => absent) ?? {};
  if ((options['header'] ?? '') === '') throw new Refusal('Header is required');
  if ((options['secret'] ?? '') === '') throw new Refusal('Secret is required');
  const text = 'Operation not supported: setting a launch secret is only supported in SEV-enabled domains';
  throw libvirtError(84, text);
}
