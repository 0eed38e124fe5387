import {
  ConnectDomainQemuMonitorEventRegisterFlags as MonitorFlags,
  ConnectListAllDomainsFlags as ListFlags,
  DomainEventID,
  DomainState,
  DriverFeature,
  ErrorDomain,
  ErrorNumber,
} from '../../gen/constants.gen.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError } from '../errors.ts';
import type { CallHandlers } from './context.ts';

const FEATURES: ReadonlySet<number> = new Set([
  DriverFeature.MIGRATION_V2,
  DriverFeature.MIGRATION_P2P,
  DriverFeature.MIGRATION_V3,
  DriverFeature.MIGRATE_CHANGE_PROTECTION,
  DriverFeature.TYPED_PARAM_STRING,
  DriverFeature.PROGRAM_KEEPALIVE,
  DriverFeature.XML_MIGRATABLE,
  DriverFeature.MIGRATION_OFFLINE,
  DriverFeature.MIGRATION_PARAMS,
  DriverFeature.REMOTE_EVENT_CALLBACK,
  DriverFeature.REMOTE_CLOSE_CALLBACK,
]);

/** Calls about the connection, the host, look-ups and events. */
export const connectCalls: CallHandlers = {
  AUTH_LIST: () => ({ types: [0] }),
  AUTH_POLKIT: () => ({ complete: 1 }),
  CONNECT_SUPPORTS_FEATURE: ({ feature }) => ({ supported: FEATURES.has(feature) ? 1 : 0 }),
  CONNECT_OPEN: ({ name }, { session, uri }) => {
    if (name !== uri) {
      const text = `internal error: unexpected driver URI path '${name ?? ''}', try ${uri}`;
      throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.QEMU, text);
    }
    session.open();
  },
  CONNECT_CLOSE: () => undefined,
  CONNECT_REGISTER_CLOSE_CALLBACK: () => undefined,
  CONNECT_UNREGISTER_CLOSE_CALLBACK: () => undefined,
  CONNECT_GET_TYPE: () => ({ type: 'QEMU' }),
  CONNECT_GET_VERSION: (_args, { hypervisor }) => ({ hv_ver: hypervisor.facts.hypervisorVersion }),
  CONNECT_GET_LIB_VERSION: (_args, { hypervisor }) => ({ lib_ver: hypervisor.facts.libvirtVersion }),
  CONNECT_GET_HOSTNAME: (_args, { hypervisor }) => ({ hostname: hypervisor.facts.hostname }),
  CONNECT_GET_URI: (_args, { uri }) => ({ uri }),
  CONNECT_GET_CAPABILITIES: (_args, { hypervisor }) => ({ capabilities: hypervisor.facts.capabilities }),
  CONNECT_GET_DOMAIN_CAPABILITIES: (_args, { hypervisor }) => ({ capabilities: hypervisor.facts.domainCapabilities }),
  NODE_GET_INFO: (_args, { hypervisor }) => {
    const { cpus, memoryKiB } = hypervisor.facts;
    return { model: 'x86_64', memory: memoryKiB, cpus, mhz: 2_000, nodes: 1, sockets: 1, cores: cpus, threads: 1 };
  },
  NODE_GET_SEV_INFO: () => {
    throw daemonError(
      ErrorNumber.OPERATION_UNSUPPORTED,
      ErrorDomain.QEMU,
      'Operation not supported: QEMU does not support SEV guest',
    );
  },
  DOMAIN_LOOKUP_BY_NAME: ({ name }, { hypervisor }) => ({ dom: hypervisor.byName(name).ref }),
  DOMAIN_LOOKUP_BY_UUID: ({ uuid }, { hypervisor }) => ({ dom: hypervisor.byUuid(uuid).ref }),
  DOMAIN_LOOKUP_BY_ID: ({ id }, { hypervisor }) => {
    const found = hypervisor.domains.find((domain) => domain.id === id);
    if (found !== undefined) return { dom: found.ref };
    const text = `Domain not found: no domain with matching id ${String(id)}`;
    throw daemonError(ErrorNumber.NO_DOMAIN, ErrorDomain.QEMU, text);
  },
  CONNECT_LIST_ALL_DOMAINS: ({ need_results, flags }, { hypervisor }) => {
    const found = hypervisor.domains.filter((domain) => isListed(domain, flags));
    return { domains: need_results === 0 ? [] : found.map((domain) => domain.ref), ret: found.length };
  },
  CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY: ({ eventID, dom }, { session, nextCallbackId }) => {
    if (!Object.values(DomainEventID).some((id) => id === eventID)) {
      const text = `internal error: unsupported event ID ${String(eventID)}`;
      throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.RPC, text);
    }
    const callbackID = nextCallbackId();
    session.domainRegistrations.set(callbackID, { eventId: eventID, uuid: dom?.uuid });
    return { callbackID };
  },
  CONNECT_DOMAIN_EVENT_CALLBACK_DEREGISTER_ANY: ({ callbackID }, { session }) => {
    if (session.domainRegistrations.delete(callbackID)) return;
    const text = `internal error: domain event callback ${String(callbackID)} not registered`;
    throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.RPC, text);
  },
  QEMU_CONNECT_DOMAIN_MONITOR_EVENT_REGISTER: ({ dom, event, flags }, { session, nextCallbackId }) => {
    const callbackID = nextCallbackId();
    session.monitorRegistrations.set(callbackID, { uuid: dom?.uuid, matches: eventMatcher(event, flags) });
    return { callbackID };
  },
  QEMU_CONNECT_DOMAIN_MONITOR_EVENT_DEREGISTER: ({ callbackID }, { session }) => {
    if (session.monitorRegistrations.delete(callbackID)) return;
    const text = `internal error: qemu monitor event callback ${String(callbackID)} not registered`;
    throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.RPC, text);
  },
};

function eventMatcher(event: string | null, flags: number): (name: string) => boolean {
  if (event === null) return () => true;
  const ignoresCase = (flags & MonitorFlags.NOCASE) !== 0;
  if ((flags & MonitorFlags.REGEX) === 0) {
    return (name) => (ignoresCase ? name.toLowerCase() === event.toLowerCase() : name === event);
  }
  const pattern = new RegExp(event, ignoresCase ? 'i' : '');
  return (name) => pattern.test(name);
}

/** Each pair of flags chooses within its own group; groups without a flag choose nothing. */
function isListed(domain: FakeDomain, flags: number): boolean {
  const groups: readonly (readonly (readonly [number, boolean])[])[] = [
    [
      [ListFlags.ACTIVE, domain.isActive],
      [ListFlags.INACTIVE, !domain.isActive],
    ],
    [
      [ListFlags.PERSISTENT, domain.isPersistent],
      [ListFlags.TRANSIENT, !domain.isPersistent],
    ],
    [
      [ListFlags.RUNNING, domain.state === DomainState.RUNNING],
      [ListFlags.PAUSED, domain.state === DomainState.PAUSED],
      [ListFlags.SHUTOFF, domain.state === DomainState.SHUTOFF],
      [ListFlags.OTHER, domain.state === DomainState.SHUTDOWN || domain.state === DomainState.CRASHED],
    ],
  ];
  return groups.every((group) => {
    const asked = group.filter(([flag]) => (flags & flag) !== 0);
    return asked.length === 0 || asked.some(([, holds]) => holds);
  });
}
