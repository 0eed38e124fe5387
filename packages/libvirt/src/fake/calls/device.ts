import { DomainDeviceModifyFlags as Modify, ErrorDomain, ErrorNumber } from '../../gen/constants.gen.ts';
import { addAlias, addDevice, findDevice, missingDevice, removeDevice, replaceDevice } from '../devices.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError } from '../errors.ts';
import { child, childrenOf, parseXml } from '../xml.ts';
import type { XmlElement } from '../xml.ts';
import { domainOf } from './context.ts';
import type { CallContext, CallHandlers } from './context.ts';

type DeviceArgs = Parameters<NonNullable<CallHandlers['DOMAIN_ATTACH_DEVICE_FLAGS']>>[0];

/** Devices: attach, change, detach, resize. */
export const deviceCalls: CallHandlers = {
  DOMAIN_ATTACH_DEVICE_FLAGS: attachDevice,
  DOMAIN_UPDATE_DEVICE_FLAGS: updateDevice,
  DOMAIN_DETACH_DEVICE_FLAGS: detachDevice,
  DOMAIN_DETACH_DEVICE_ALIAS: (args, context) => {
    const domain = domainOf(args, context);
    const device = childrenOf(child(domain.current, 'devices')).find(
      (one) => child(one, 'alias')?.attributes['name'] === args.alias,
    );
    if (device === undefined) {
      const text = `internal error: no device found with alias ${args.alias}`;
      throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.QEMU, text);
    }
    unplug(domain, device);
  },
  DOMAIN_BLOCK_RESIZE: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    diskOf(domain, args.disk);
    const isBytes = (args.flags & 1) !== 0;
    domain.stats.set(`block.${args.disk}.capacity`, isBytes ? args.size : args.size * 1_024n);
  },
  DOMAIN_GET_BLOCK_INFO: (args, context) => {
    const domain = domainOf(args, context);
    diskOf(domain, args.path);
    const known = domain.stats.get(`block.${args.path}.capacity`);
    const capacity = typeof known === 'bigint' ? known : 1n << 30n;
    return { allocation: 0n, capacity, physical: capacity };
  },
  DOMAIN_GET_DISK_ERRORS: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    if (args.maxerrors === 0)
      return { errors: [], nerrors: childrenOf(child(domain.current, 'devices'), 'disk').length };
    const errors = [...domain.diskErrors].slice(0, args.maxerrors).map(([disk, error]) => ({ disk, error }));
    return { errors, nerrors: errors.length };
  },
};

function attachDevice(args: DeviceArgs, context: CallContext): void {
  const domain = domainOf(args, context);
  const { isLive, isConfig } = targets(domain, args.flags);
  const device = parseXml(args.xml);
  const disk = device.name === 'disk' ? child(device, 'target')?.attributes['dev'] : undefined;
  if (disk !== undefined && findDevice(isLive ? domain.current : domain.definition, device) !== undefined) {
    throw daemonError(
      ErrorNumber.OPERATION_FAILED,
      ErrorDomain.QEMU,
      `operation failed: target ${disk} already exists`,
    );
  }
  if (isConfig) addDevice(domain.definition, parseXml(args.xml));
  if (!isLive) return;
  const alias = addAlias(domain.current, device);
  addDevice(domain.current, device);
  domain.host.emit('deviceAdded', domain, { devAlias: alias });
}

function updateDevice(args: DeviceArgs, context: CallContext): void {
  const domain = domainOf(args, context);
  const { isLive, isConfig } = targets(domain, args.flags);
  const descriptions = [...(isLive ? [domain.current] : []), ...(isConfig ? [domain.definition] : [])];
  for (const description of descriptions) {
    const device = parseXml(args.xml);
    const old = findDevice(description, device);
    if (old === undefined) throw missingDevice(device);
    const alias = child(old, 'alias');
    if (alias !== undefined && child(device, 'alias') === undefined) device.children.push(alias);
    replaceDevice(description, old, device);
  }
}

function detachDevice(args: DeviceArgs, context: CallContext): void {
  const domain = domainOf(args, context);
  const { isLive, isConfig } = targets(domain, args.flags);
  const wanted = parseXml(args.xml);
  if (isConfig) {
    const device = findDevice(domain.definition, wanted);
    if (device === undefined && !isLive) throw missingDevice(wanted);
    if (device !== undefined) removeDevice(domain.definition, device);
  }
  if (!isLive) return;
  const device = findDevice(domain.current, wanted);
  if (device === undefined) throw missingDevice(wanted);
  unplug(domain, device);
}

function targets(domain: FakeDomain, flags: number): { isLive: boolean; isConfig: boolean } {
  const isConfig = (flags & Modify.CONFIG) !== 0 || ((flags & Modify.LIVE) === 0 && !domain.isActive);
  const isLive = (flags & Modify.LIVE) !== 0 || ((flags & Modify.CONFIG) === 0 && domain.isActive);
  if (isLive) domain.assertActive();
  return { isLive, isConfig };
}

/** The guest releases the device, or keeps it; the call succeeds either way. */
function unplug(domain: FakeDomain, device: XmlElement): void {
  domain.assertActive();
  if (domain.behaviour.onDetach === 'keep') return;
  removeDevice(domain.current, device);
  domain.host.emit('deviceRemoved', domain, { devAlias: child(device, 'alias')?.attributes['name'] ?? '' });
}

function diskOf(domain: FakeDomain, path: string): XmlElement {
  const found = childrenOf(child(domain.current, 'devices'), 'disk').find((disk) => {
    const source = child(disk, 'source');
    return [child(disk, 'target')?.attributes['dev'], source?.attributes['file'], source?.attributes['dev']].includes(
      path,
    );
  });
  if (found !== undefined) return found;
  const text = `invalid argument: invalid path ${path} not assigned to domain`;
  throw daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.QEMU, text);
}
