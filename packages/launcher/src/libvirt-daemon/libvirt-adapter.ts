import { isLibvirtError } from '@virtwire/libvirt';
import type { Connection, Domain, TypedParams } from '@virtwire/libvirt';
import type { DomainRef, LibvirtPort, Params, ParamValue } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';

/** ACTIVE and INACTIVE. */
const ALL_DOMAINS = 1 | 2;
/** The largest guests on the slowest storage are done by then; a dump that hangs is not waited for for ever. */
const DUMP_LIMIT_MS = 6 * 3_600_000;

/** libvirt's error as the launcher sees it; anything else unchanged. */
function translate(caught: unknown): unknown {
  if (!isLibvirtError(caught)) return caught;
  const isUnanswered = caught.kind !== 'Daemon';
  return new LibvirtCallError(caught.code, caught.domain, caught.message, { cause: caught, isUnanswered });
}

/** Typed parameters by name; of several with one name the first counts. */
export function paramsOf(params: TypedParams): Params {
  const map = new Map<string, ParamValue>();
  for (const { field, value } of params) if (!map.has(field)) map.set(field, value);
  return map;
}

function refOf({ name, uuid, id }: Domain): DomainRef {
  return { name, uuid, id };
}

/** Bit j of byte j/8, low bit first: whether a vCPU may run on host CPU j. */
function cpuMapBits(map: Uint8Array, cpus: number): readonly boolean[] {
  return Array.from({ length: cpus }, (_, cpu) => (((map[cpu >> 3] ?? 0) >> (cpu & 7)) & 1) === 1);
}

/** The bitmap of `cpuMapBits`, as short as the highest CPU allows. */
function cpuMap(cpus: readonly number[]): Uint8Array {
  const map = new Uint8Array((Math.max(0, ...cpus) >> 3) + 1);
  for (const cpu of cpus) map[cpu >> 3] = (map[cpu >> 3] ?? 0) | (1 << (cpu & 7));
  return map;
}

async function vcpuPinInfo(connection: Connection, domain: Domain): Promise<readonly (readonly boolean[])[]> {
  const [{ nrVirtCpu }, node] = await Promise.all([domain.getInfo(), connection.getNodeInfo()]);
  const cpus = node.nodes * node.sockets * node.cores * node.threads;
  const maps = await domain.getVcpuPinInfo(nrVirtCpu, Math.ceil(cpus / 8));
  return maps.map((map) => cpuMapBits(map, cpus));
}

/** Every operation of a port, with libvirt's errors translated. */
export function translating<T extends object>(port: T): T {
  const wrapped = Object.entries(port).map(([name, operation]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await (operation as (...args: unknown[]) => Promise<unknown>)(...args);
      } catch (caught) {
        throw translate(caught);
      }
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}

/** The launcher's view of a libvirt connection. */
export function libvirtPort(connection: Connection): LibvirtPort {
  const at = (ref: DomainRef): Domain => connection.domain(ref);
  return translating<LibvirtPort>({
    ...lifeCalls(connection, at),
    ...deviceCalls(at),
    ...guestCalls(at),
    ...jobCalls(at),
    ...statisticsCalls(connection, at),
  });
}

type At = (ref: DomainRef) => Domain;

function lifeCalls(connection: Connection, at: At) {
  return {
    lookupDomainByName: async (name) => refOf(await connection.lookupDomainByName(name)),
    listAllDomains: async () => (await connection.listAllDomains(ALL_DOMAINS)).map(refOf),
    defineXml: async (xml) => refOf(await connection.defineDomainXml(xml)),
    getState: (ref) => at(ref).getState(),
    getXml: (ref, flags) => at(ref).getXmlDesc(flags),
    associateDescriptor: (ref, group, descriptor) => at(ref).fdAssociate(group, [descriptor]),
    create: (ref, flags) => at(ref).create(flags),
    suspend: (ref) => at(ref).suspend(),
    resume: (ref) => at(ref).resume(),
    shutdown: (ref, flags) => at(ref).shutdown(flags),
    destroy: (ref, flags) => at(ref).destroy(flags),
    undefine: (ref, flags) => at(ref).undefine(flags),
    reset: (ref) => at(ref).reset(),
    reboot: (ref, flags) => at(ref).reboot(flags),
    getVersion: () => connection.getVersion(),
    getDomainCapabilities: (arch, machine, virtType) =>
      connection.getDomainCapabilities({ arch, virtType, ...(machine === '' ? {} : { machine }) }),
  } satisfies Partial<LibvirtPort>;
}

function deviceCalls(at: At) {
  return {
    attachDevice: (ref, xml, flags) => at(ref).attachDevice(xml, flags),
    detachDevice: (ref, xml, flags) => at(ref).detachDevice(xml, flags),
    updateDevice: (ref, xml, flags) => at(ref).updateDevice(xml, flags),
    setVcpus: (ref, count, flags) => at(ref).setVcpus(count, flags),
    pinVcpu: (ref, vcpu, cpus, flags) => at(ref).pinVcpu(vcpu, cpuMap(cpus), flags),
    pinEmulator: (ref, cpus, flags) => at(ref).pinEmulator(cpuMap(cpus), flags),
    getBlockInfo: (ref, path) => at(ref).getBlockInfo(path),
    blockResize: (ref, path, size, flags) => at(ref).blockResize(path, size, flags),
    getDiskErrors: async (ref) => (await at(ref).getDiskErrors()).filter(({ disk }) => disk !== ''),
  } satisfies Partial<LibvirtPort>;
}

function guestCalls(at: At) {
  return {
    async fsFreeze(ref) {
      await at(ref).fsFreeze();
    },
    async fsThaw(ref) {
      await at(ref).fsThaw();
    },
    async screenshot(ref) {
      const { mime, data } = await at(ref).screenshot();
      return { mime: mime ?? '', data };
    },
    getLaunchSecurityInfo: async (ref) => paramsOf(await at(ref).getLaunchSecurityInfo()),
    setLaunchSecurityState: (ref, { header, secret }) =>
      at(ref).setLaunchSecurityState([
        { field: 'sev-secret-header', type: 'string', value: header },
        { field: 'sev-secret', type: 'string', value: secret },
      ]),
    setTime: (ref, seconds, nanoseconds) => at(ref).setTime(BigInt(seconds), nanoseconds),
    agentCommand: async (ref, command) => (await at(ref).agentCommand(command)) ?? '',
    setAgentTimeout: (ref, seconds) => at(ref).agentSetResponseTimeout(seconds),
    setUserPassword: (ref, user, password) => at(ref).setUserPassword(user, password),
    setAuthorizedSshKeys: (ref, user, keys) => at(ref).authorizedSshKeysSet(user, keys),
    guestInfo: async (ref, types) => paramsOf(await at(ref).getGuestInfo(types)),
  } satisfies Partial<LibvirtPort>;
}

function jobCalls(at: At) {
  return {
    coreDump: (ref, path, format, flags) => at(ref).coreDump(path, format, flags, { timeoutMs: DUMP_LIMIT_MS }),
    getJobInfo: (ref) => at(ref).getJobInfo(),
    async getJobStats(ref, flags) {
      const { type, params } = await at(ref).getJobStats(flags);
      return { type, params: paramsOf(params) };
    },
    abortJob: (ref) => at(ref).abortJob(),
    backupBegin: (ref, backupXml, checkpointXml) => at(ref).backupBegin(backupXml, checkpointXml),
    async createCheckpoint(ref, xml, flags) {
      await at(ref).checkpointCreateXml(xml, flags);
    },
    monitorCommand: (ref, command) => at(ref).monitorCommand(command),
  } satisfies Partial<LibvirtPort>;
}

function statisticsCalls(connection: Connection, at: At) {
  return {
    startDirtyRateCalc: (ref, seconds) => at(ref).startDirtyRateCalc(seconds),
    getSevInfo: async () => paramsOf(await connection.getSevInfo()),
    async allDomainStats(stats, flags) {
      const records = await connection.getAllDomainStats({ stats, flags });
      return records.map(({ domain, params }) => ({ domain: refOf(domain), params: paramsOf(params) }));
    },
    memoryStats: (ref) => at(ref).memoryStats(),
    vcpuPinInfo: (ref) => vcpuPinInfo(connection, at(ref)),
  } satisfies Partial<LibvirtPort>;
}
