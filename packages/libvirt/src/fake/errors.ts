import { LibvirtError } from '../errors.ts';
import { ErrorDomain, ErrorLevel, ErrorNumber } from '../gen/constants.gen.ts';

/** An error that the fake daemon answers, in libvirt's own words. */
export function daemonError(code: number, domain: number, message: string): LibvirtError {
  // As the daemon: str1 is the format, str2 what was put into it.
  const [, prefix, rest] = /^([^:]+): (.*)$/s.exec(message) ?? [];
  const str1 = prefix === undefined ? message : `${prefix}: %s`;
  return new LibvirtError(message, { kind: 'Daemon', code, domain, level: ErrorLevel.ERROR, str1, str2: rest ?? null });
}

/** NO_DOMAIN for a look-up by name. */
export function noDomainByName(name: string): LibvirtError {
  const text = `Domain not found: no domain with matching name '${name}'`;
  return daemonError(ErrorNumber.NO_DOMAIN, ErrorDomain.QEMU, text);
}

/** NO_DOMAIN for a look-up by uuid; calls on a handle name the domain as well. */
export function noDomainByUuid(uuid: string, name?: string): LibvirtError {
  const suffix = name === undefined ? '' : ` (${name})`;
  const text = `Domain not found: no domain with matching uuid '${uuid}'${suffix}`;
  return daemonError(ErrorNumber.NO_DOMAIN, ErrorDomain.QEMU, text);
}

/** OPERATION_INVALID: wrong state. */
export function invalidState(what: string, domain: number = ErrorDomain.QEMU): LibvirtError {
  return daemonError(ErrorNumber.OPERATION_INVALID, domain, `Requested operation is not valid: ${what}`);
}

/** INVALID_ARG: a domain is to start that wants descriptors which nobody has passed. */
export function descriptorsMissing(group: string): LibvirtError {
  const text = `invalid argument: file descriptor group '${group}' was not associated with the domain`;
  return daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.QEMU, text);
}

/** AGENT_UNRESPONSIVE: no agent is connected. */
export function agentNotConnected(): LibvirtError {
  const text = 'Guest agent is not responding: QEMU guest agent is not connected';
  return daemonError(ErrorNumber.AGENT_UNRESPONSIVE, ErrorDomain.QEMU, text);
}
