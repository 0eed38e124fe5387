import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort, Params, ParamValue } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import type { AgentReply, ScriptedAnswer, ScriptedDomain, TraceEntry, VectorInput } from './vector-types.ts';

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
}

/** The outside world of a case. */
export interface ScriptedWorld {
  readonly script: Script;
  readonly input: VectorInput;
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

/** Flattens nested guest info (`os: {name}`, `users: [...]`) into libvirt's typed parameters. */
export function guestInfoParams(info: unknown): Params {
  const params = new Map<string, ParamValue>();
  const listName: Readonly<Record<string, string>> = { users: 'user', interfaces: 'if', addrs: 'addr' };
  const put = (prefix: string, value: unknown): void => {
    if (Array.isArray(value)) {
      params.set(`${prefix}.count`, value.length);
      value.forEach((item, i) => put(`${prefix}.${i}`, item));
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, field] of Object.entries(value)) put(`${prefix}.${listName[key] ?? key}`, field);
    } else params.set(prefix, value as ParamValue);
  };
  for (const [key, value] of Object.entries((info ?? {}) as object)) put(listName[key] ?? key, value);
  return params;
}

/** A scripted stand-in for libvirt with one domain, after the rules of the launcher vectors. */
export function createScriptedLibvirt(world: ScriptedWorld): LibvirtPort {
  const { script, input, record } = world;
  const { namespace, name } = input.vmi.metadata;
  const own = `${namespace}_${name}`;
  const ref = (): DomainRef => ({ name: own, uuid: script.domain?.uuid ?? '', id: 1 });

  async function answer(call: string, entry: TraceEntry = {}): Promise<ScriptedAnswer> {
    const scripted = script.answers[call]?.shift() ?? {};
    if (scripted.delayMs !== undefined) await world.clock.sleep(scripted.delayMs);
    record({ libvirt: call, ...entry });
    if (scripted.error !== undefined) raise(scripted.error);
    return scripted;
  }
  function exists(): ScriptedDomain {
    return script.domain ?? raise({ code: 42, domain: 10, message: 'Domain not found' });
  }
  function setState(state: number, reason: number): void {
    if (script.domain !== null) script.domain = { ...script.domain, state, reason };
  }
  async function change(call: string, entry: TraceEntry, then: () => void): Promise<void> {
    await answer(call, entry);
    exists();
    then();
  }

  return {
    async lookupDomainByName(wanted) {
      await answer('LookupDomainByName', { name: wanted });
      if (wanted !== own) raise({ code: 42, domain: 10, message: 'Domain not found' });
      exists();
      return ref();
    },
    async listAllDomains() {
      await answer('ListAllDomains');
      if (script.domain === null) return [];
      const gone = script.answers['GetName']?.shift()?.error;
      return gone === undefined ? [ref()] : [];
    },
    async defineXml(xml) {
      await answer('DomainDefineXML', { xml });
      script.domain = { state: 5, reason: 0, ...script.domain, xml };
      return ref();
    },
    async getState() {
      const { state } = await answer('GetState');
      const domain = exists();
      return state === undefined
        ? { state: domain.state, reason: domain.reason }
        : { state: state[0], reason: state[1] };
    },
    async getXml(_domain, flags) {
      const { xml } = await answer('GetXMLDesc', { flags });
      const domain = exists();
      const special = flags === 2 ? domain.inactiveXml : flags === 8 ? domain.migratableXml : undefined;
      return xml ?? special ?? domain.xml ?? '';
    },
    create: (_d, flags) => change('CreateWithFlags', { flags }, () => (flags === 1 ? setState(3, 1) : setState(1, 1))),
    suspend: () => change('Suspend', {}, () => setState(3, 1)),
    resume: () => change('Resume', {}, () => setState(1, 5)),
    shutdown: (_d, flags) => change('ShutdownFlags', { flags }, () => undefined),
    destroy: (_d, flags) => change('DestroyFlags', { flags }, () => setState(5, 2)),
    undefine: (_d, flags) => change('UndefineFlags', { flags }, () => (script.domain = null)),
    setTime: () => change('SetTime', { flags: 0 }, () => undefined),
    async getDiskErrors() {
      const { result } = await answer('GetDiskErrors');
      return ((result ?? []) as { Disk: string; Error: number }[]).map(({ Disk, Error }) => ({
        disk: Disk,
        error: Error,
      }));
    },
    async getJobInfo() {
      const { result } = await answer('GetJobInfo');
      return { type: Number((result as { type?: number } | undefined)?.type ?? 0) };
    },
    async getJobStats() {
      const { result } = await answer('GetJobStats');
      const { type = 0, ...rest } = (result ?? {}) as Record<string, ParamValue>;
      return { type: Number(type), params: new Map(Object.entries(rest)) };
    },
    async agentCommand(_domain, command) {
      const execute = String((JSON.parse(command) as { execute: string }).execute);
      if (world.hasAgentDelays) await world.clock.sleep(AGENT_DELAY_MS[execute] ?? 0);
      record({ agent: execute, command });
      const replies = script.agent[execute];
      const reply = (replies?.length ?? 0) > 1 ? replies?.shift() : replies?.[0];
      if (reply === undefined) return raise({ code: 86, domain: 10, message: NO_AGENT });
      if (reply.error !== undefined) return raise(reply.error);
      return reply.reply ?? '';
    },
    async guestInfo(_domain, types) {
      if (world.hasAgentDelays) await world.clock.sleep(GUEST_INFO_DELAY_MS[types] ?? 0);
      await answer('GetGuestInfo', { types });
      if (script.guestInfo === undefined) raise({ code: 86, domain: 10, message: NO_AGENT });
      return guestInfoParams(script.guestInfo);
    },
    async allDomainStats() {
      await answer('GetAllDomainStats');
      if (script.domain === null || input.domainStats === undefined || input.domainStats === null) return [];
      const params = new Map(Object.entries(input.domainStats) as [string, ParamValue][]);
      return [{ domain: ref(), params }];
    },
    async memoryStats() {
      await answer('MemoryStats');
      return new Map(Object.entries(input.memoryStats ?? {}).map(([tag, value]) => [Number(tag), BigInt(value)]));
    },
    async vcpuPinInfo() {
      await answer('GetVcpuPinInfo');
      return input.vcpuPinInfo ?? [];
    },
    async getVersion() {
      const { result } = await answer('GetVersion');
      return BigInt((result as number | undefined) ?? 9_001_000);
    },
    getCapabilities: () => Promise.resolve(''),
    getDomainCapabilities: () => Promise.resolve(''),
  };
}
