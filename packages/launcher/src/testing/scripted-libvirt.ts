import type { Clock } from '../config/clock.ts';
import type {
  BlockInfo,
  DiskError,
  DomainJob,
  DomainRef,
  DomainStateReason,
  DomainStatsRecord,
  LibvirtPort,
  Params,
  ParamValue,
} from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import type { AgentReply, ScriptedAnswer, ScriptedDomain, TraceEntry, VectorInput } from './vector-types.ts';

const NO_DOMAIN = { code: 42, domain: 10, message: 'Domain not found' };
const NO_AGENT = 'Guest agent is not responding: QEMU guest agent is not connected';
const AGENT_DELAY_MS: Readonly<Record<string, number>> = {
  'guest-info': 11,
  'guest-get-fsinfo': 23,
  'guest-fsfreeze-status': 37,
};
const GUEST_INFO_DELAY_MS: Readonly<Record<number, number>> = { 78: 41, 1: 53, 128: 67 };

/** What a case can change while it runs. */
export interface Script {
  domain: ScriptedDomain | null;
  answers: Record<string, ScriptedAnswer[]>;
  agent: Record<string, AgentReply[]>;
  guestInfo: unknown;
  /** The job that libvirt runs, by the names of typed parameters. */
  job?: Readonly<Record<string, ParamValue>>;
  /** Told of an abort that libvirt takes. */
  onAbort?: () => void;
}

/** The outside world of a case. */
export interface ScriptedWorld {
  readonly script: Script;
  readonly input: VectorInput;
  /** Where the pod's file system lies. */
  readonly root: string;
  readonly clock: Clock;
  readonly record: (entry: TraceEntry) => void;
  /** The stand-in agent and guest info calls take their time, as in the family `launcher-agent`. */
  readonly hasAgentDelays: boolean;
}

/** Raises what a script says. */
export function raise(error: NonNullable<ScriptedAnswer['error']>): never {
  if (error.code === undefined) throw new Error(error.text ?? '');
  throw new LibvirtCallError(error.code, error.domain ?? 0, error.message ?? '');
}

/** Records a call and gives its next scripted answer. */
export async function answer(world: ScriptedWorld, call: string, entry: TraceEntry = {}): Promise<ScriptedAnswer> {
  const { script, clock, record } = world;
  const scripted = script.answers[call]?.shift() ?? {};
  if (scripted.delayMs !== undefined) await clock.sleep(scripted.delayMs);
  record({ libvirt: call, ...entry });
  if (scripted.error !== undefined) raise(scripted.error);
  return scripted;
}

/** Flattens nested guest info (`os: {name}`, `users: [...]`) into libvirt's typed parameters. */
function guestInfoParams(info: unknown): Params {
  const params = new Map<string, ParamValue>();
  const listName: Readonly<Record<string, string>> = { users: 'user', interfaces: 'if', addrs: 'addr' };
  const put = (prefix: string, value: unknown): void => {
    if (Array.isArray(value)) {
      params.set(`${prefix}.count`, value.length);
      value.forEach((item, i) => put(`${prefix}.${i}`, item));
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, field] of Object.entries(value)) put(`${prefix}.${listName[key] ?? key}`, field as unknown);
    } else params.set(prefix, value as ParamValue);
  };
  for (const [key, value] of Object.entries(info ?? {})) put(listName[key] ?? key, value);
  return params;
}

/** A scripted stand-in for libvirt with one domain, after the rules of the launcher vectors. */
export function createScriptedLibvirt(world: ScriptedWorld): LibvirtPort {
  return new ScriptedLibvirt(world);
}

class ScriptedLibvirt implements LibvirtPort {
  readonly #world: ScriptedWorld;
  readonly #name: string;

  constructor(world: ScriptedWorld) {
    this.#world = world;
    const { namespace, name } = world.input.vmi.metadata;
    this.#name = `${namespace}_${name}`;
  }

  async lookupDomainByName(name: string): Promise<DomainRef> {
    await this.#answer('LookupDomainByName', { name });
    if (name !== (this.#world.script.domain?.name ?? this.#name)) raise(NO_DOMAIN);
    this.#exists();
    return this.#ref();
  }

  async listAllDomains(): Promise<readonly DomainRef[]> {
    const { script } = this.#world;
    await this.#answer('ListAllDomains');
    if (script.domain === null) return [];
    const gone = script.answers['GetName']?.shift()?.error;
    return gone === undefined ? [this.#ref()] : [];
  }

  async defineXml(xml: string): Promise<DomainRef> {
    const { script } = this.#world;
    await this.#answer('DomainDefineXML', { xml });
    script.domain = { state: 5, reason: 0, ...script.domain, xml };
    return this.#ref();
  }

  async getState(): Promise<DomainStateReason> {
    const { state } = await this.#answer('GetState');
    const domain = this.#exists();
    return state === undefined ? { state: domain.state, reason: domain.reason } : { state: state[0], reason: state[1] };
  }

  async getXml(_domain: DomainRef, flags: number): Promise<string> {
    const { xml } = await this.#answer('GetXMLDesc', { flags });
    const domain = this.#exists();
    const special = flags === 2 ? domain.inactiveXml : flags === 8 ? domain.migratableXml : undefined;
    return this.#atRoot(xml ?? special ?? domain.xml ?? '');
  }

  associateDescriptor(_domain: DomainRef, name: string): Promise<void> {
    return this.#change('FDAssociate', { name, flags: 0 });
  }

  create(_domain: DomainRef, flags: number): Promise<void> {
    return this.#change('CreateWithFlags', { flags }, flags === 1 ? [3, 1] : [1, 1]);
  }

  suspend(): Promise<void> {
    return this.#change('Suspend', {}, [3, 1]);
  }

  resume(): Promise<void> {
    return this.#change('Resume', {}, [1, 5]);
  }

  shutdown(_domain: DomainRef, flags: number): Promise<void> {
    return this.#change('ShutdownFlags', { flags });
  }

  destroy(_domain: DomainRef, flags: number): Promise<void> {
    return this.#change('DestroyFlags', { flags }, [5, 2]);
  }

  async undefine(_domain: DomainRef, flags: number): Promise<void> {
    await this.#change('UndefineFlags', { flags });
    this.#world.script.domain = null;
  }

  attachDevice(_domain: DomainRef, xml: string, flags: number): Promise<void> {
    return this.#change('AttachDeviceFlags', { flags, xml });
  }

  detachDevice(_domain: DomainRef, xml: string, flags: number): Promise<void> {
    return this.#change('DetachDeviceFlags', { flags, xml });
  }

  updateDevice(_domain: DomainRef, xml: string, flags: number): Promise<void> {
    return this.#change('UpdateDeviceFlags', { flags, xml });
  }

  setVcpus(_domain: DomainRef, vcpus: number, flags: number): Promise<void> {
    return this.#change('SetVcpusFlags', { flags, vcpus });
  }

  pinVcpu(_domain: DomainRef, vcpu: number, cpus: readonly number[], flags: number): Promise<void> {
    return this.#change('PinVcpuFlags', { flags, vcpu, cpus });
  }

  pinEmulator(_domain: DomainRef, cpus: readonly number[], flags: number): Promise<void> {
    return this.#change('PinEmulator', { flags, cpus });
  }

  async getBlockInfo(): Promise<BlockInfo> {
    const { result } = await this.#answer('GetBlockInfo');
    const { Capacity = 0, Physical = 0, Allocation = 0 } = (result ?? {}) as Record<string, number>;
    return { capacity: BigInt(Capacity), physical: BigInt(Physical), allocation: BigInt(Allocation) };
  }

  blockResize(_domain: DomainRef, path: string, size: bigint, flags: number): Promise<void> {
    return this.#change('BlockResize', { flags, disk: path.replace(this.#world.root, ''), size: Number(size) });
  }

  reset(): Promise<void> {
    return this.#change('Reset', { flags: 0 });
  }

  reboot(_domain: DomainRef, flags: number): Promise<void> {
    return this.#change('Reboot', { flags });
  }

  fsFreeze(): Promise<void> {
    return this.#change('FSFreeze', { flags: 0 });
  }

  fsThaw(): Promise<void> {
    return this.#change('FSThaw', { flags: 0 });
  }

  coreDump(_domain: DomainRef, to: string, _format: number, flags: number): Promise<void> {
    return this.#change('CoreDumpWithFormat', { flags, to: to.replace(this.#world.root, '') });
  }

  async screenshot(): Promise<{ readonly mime: string; readonly data: Uint8Array }> {
    const { result: data = '' } = await this.#answer('NewStream');
    const { result: mime = '' } = await this.#answer('Screenshot');
    return { mime: String(mime), data: Buffer.from(String(data)) };
  }

  startDirtyRateCalc(_domain: DomainRef, seconds: number): Promise<void> {
    return this.#change('StartDirtyRateCalc', { flags: 0, seconds });
  }

  async getSevInfo(): Promise<Params> {
    const { result } = await this.#answer('GetSEVInfo');
    const { PDH, CertChain } = (result ?? {}) as Record<string, string>;
    return new Map(Object.entries({ pdh: PDH ?? '', 'cert-chain': CertChain ?? '' }));
  }

  async getLaunchSecurityInfo(): Promise<Params> {
    const { result } = await this.#answer('GetLaunchSecurityInfo');
    const given = (result ?? {}) as Record<string, ParamValue>;
    const names = {
      'sev-measurement': 'SEVMeasurement',
      'sev-api-major': 'SEVAPIMajor',
      'sev-api-minor': 'SEVAPIMinor',
      'sev-build-id': 'SEVBuildID',
      'sev-policy': 'SEVPolicy',
    };
    return new Map(
      Object.entries(names).flatMap(([param, field]) => {
        const value = given[field];
        return given[`${field}Set`] === true && value !== undefined ? [[param, value] as const] : [];
      }),
    );
  }

  setLaunchSecurityState(): Promise<void> {
    return this.#change('SetLaunchSecurityState', { flags: 0 });
  }

  setTime(): Promise<void> {
    return this.#change('SetTime', { flags: 0 });
  }

  async getDiskErrors(): Promise<readonly DiskError[]> {
    const { result } = await this.#answer('GetDiskErrors');
    return ((result ?? []) as { Disk: string; Error: number }[]).map((e) => ({ disk: e.Disk, error: e.Error }));
  }

  async getJobInfo(): Promise<{ readonly type: number }> {
    const { result } = await this.#answer('GetJobInfo');
    const { type = 0 } = (result ?? this.#world.script.job ?? {}) as { readonly type?: number };
    return { type };
  }

  async getJobStats(): Promise<DomainJob> {
    const { result } = await this.#answer('GetJobStats');
    const { type = 0, ...rest } = (result ?? this.#world.script.job ?? {}) as Record<string, ParamValue>;
    return { type: Number(type), params: new Map(Object.entries(rest)) };
  }

  async abortJob(): Promise<void> {
    await this.#change('AbortJob', {});
    this.#world.script.onAbort?.();
  }

  backupBegin(_domain: DomainRef, backup: string, checkpointXml: string): Promise<void> {
    const backupXml = backup.replaceAll(this.#world.root, '');
    return this.#change('BackupBegin', { flags: 0, backupXml, checkpointXml });
  }

  createCheckpoint(_domain: DomainRef, xml: string, flags: number): Promise<void> {
    return this.#change('CreateCheckpointXML', { flags, xml });
  }

  async monitorCommand(_domain: DomainRef, command: string): Promise<string> {
    return (await this.#answer('QemuMonitorCommand', { flags: 0, command })).reply ?? '';
  }

  async agentCommand(_domain: DomainRef, command: string): Promise<string> {
    const { script, clock, hasAgentDelays, record } = this.#world;
    const { execute } = JSON.parse(command) as { readonly execute: string };
    if (hasAgentDelays) await clock.sleep(AGENT_DELAY_MS[execute] ?? 0);
    record({ agent: execute, command });
    const replies = script.agent[execute];
    const reply = (replies?.length ?? 0) > 1 ? replies?.shift() : replies?.[0];
    if (reply === undefined) return raise({ code: 86, domain: 10, message: NO_AGENT });
    return reply.error === undefined ? (reply.reply ?? '') : raise(reply.error);
  }

  async guestInfo(_domain: DomainRef, types: number): Promise<Params> {
    const { script, clock, hasAgentDelays } = this.#world;
    if (hasAgentDelays) await clock.sleep(GUEST_INFO_DELAY_MS[types] ?? 0);
    await this.#answer('GetGuestInfo', { types });
    if (script.guestInfo === undefined) raise({ code: 86, domain: 10, message: NO_AGENT });
    return guestInfoParams(script.guestInfo);
  }

  setAgentTimeout(): Promise<void> {
    return Promise.resolve();
  }

  setUserPassword(_domain: DomainRef, user: string, password: string): Promise<void> {
    return this.#change('SetUserPassword', { flags: 0, user, password });
  }

  setAuthorizedSshKeys(_domain: DomainRef, user: string, keys: readonly string[]): Promise<void> {
    return this.#change('AuthorizedSSHKeysSet', { flags: 0, user, keys });
  }

  async allDomainStats(): Promise<readonly DomainStatsRecord[]> {
    const { script, input } = this.#world;
    await this.#answer('GetAllDomainStats');
    if (script.domain === null || input.domainStats === undefined || input.domainStats === null) return [];
    const params = new Map(Object.entries(input.domainStats) as [string, ParamValue][]);
    return [{ domain: this.#ref(), params }];
  }

  async memoryStats(): Promise<ReadonlyMap<number, bigint>> {
    await this.#answer('MemoryStats');
    const { memoryStats = {} } = this.#world.input;
    return new Map(Object.entries(memoryStats).map(([tag, value]) => [Number(tag), BigInt(value)]));
  }

  async vcpuPinInfo(): Promise<readonly (readonly boolean[])[]> {
    await this.#answer('GetVcpuPinInfo');
    return this.#world.input.vcpuPinInfo ?? [];
  }

  async getVersion(): Promise<bigint> {
    const { result } = await this.#answer('GetVersion');
    return BigInt((result as number | undefined) ?? 9_001_000);
  }

  getDomainCapabilities(): Promise<string> {
    return Promise.resolve('');
  }

  /** Disks that come and go lie below the case's root. */
  #atRoot(xml: string): string {
    const { root } = this.#world;
    return xml.includes(root)
      ? xml
      : xml.replaceAll('"/var/run/kubevirt/hotplug-disks/', `"${root}/var/run/kubevirt/hotplug-disks/`);
  }

  #ref(): DomainRef {
    return { name: this.#name, uuid: this.#world.script.domain?.uuid ?? '', id: 1 };
  }

  #answer(call: string, entry?: TraceEntry): Promise<ScriptedAnswer> {
    return answer(this.#world, call, entry);
  }

  #exists(): ScriptedDomain {
    return this.#world.script.domain ?? raise(NO_DOMAIN);
  }

  async #change(call: string, entry: TraceEntry, state?: readonly [number, number]): Promise<void> {
    await this.#answer(call, entry);
    const domain = this.#exists();
    if (state !== undefined) this.#world.script.domain = { ...domain, state: state[0], reason: state[1] };
  }
}
