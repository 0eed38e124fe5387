import { ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import { daemonError } from './errors.ts';
import { child, childrenOf } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** Gives every device of a started domain its alias and the paths that the daemon fills in. */
export function describeDevices(live: XmlElement, domain: { readonly name: string; readonly id: number }): void {
  for (const device of childrenOf(child(live, 'devices'))) {
    if (device.name === 'emulator') continue;
    addAlias(live, device);
    if (device.name === 'channel') describeChannel(device, domain);
  }
}

function describeChannel(channel: XmlElement, domain: { readonly name: string; readonly id: number }): void {
  const target = child(channel, 'target');
  const name = target?.attributes['name'];
  if (target === undefined || name === undefined) return;
  target.attributes['state'] = 'disconnected';
  if (child(channel, 'source') !== undefined) return;
  const path = `/var/lib/libvirt/qemu/channel/target/domain-${String(domain.id)}-${domain.name}/${name}`;
  channel.children.unshift({ name: 'source', attributes: { mode: 'bind', path }, children: [] });
}

/** Alias prefixes of the daemon, by device element; disks have their bus in front. */
const PREFIXES: Readonly<Record<string, string>> = {
  interface: 'net',
  memballoon: 'balloon',
  redirdev: 'redir',
  shmem: 'shmem',
};

/** Gives a device an alias in the daemon's form, unless the user chose one. */
export function addAlias(live: XmlElement, device: XmlElement): string {
  const known = child(device, 'alias')?.attributes['name'];
  if (known !== undefined) return known;
  const taken = new Set(childrenOf(child(live, 'devices')).map((other) => child(other, 'alias')?.attributes['name']));
  const bus = device.name === 'disk' ? `${child(device, 'target')?.attributes['bus'] ?? 'virtio'}-disk` : undefined;
  const prefix = bus ?? PREFIXES[device.name] ?? device.name;
  let index = 0;
  while (taken.has(`${prefix}${String(index)}`)) index++;
  const name = `${prefix}${String(index)}`;
  device.children.push({ name: 'alias', attributes: { name }, children: [] });
  return name;
}

/** The device of a domain that a device XML means: same kind, and same target, MAC, alias or source. */
export function findDevice(domain: XmlElement, wanted: XmlElement): XmlElement | undefined {
  const identity = identityOf(wanted);
  return childrenOf(child(domain, 'devices'), wanted.name).find((device) => {
    const mine = identityOf(device);
    return identity.some(([key, value]) => mine.some(([otherKey, other]) => otherKey === key && other === value));
  });
}

function identityOf(device: XmlElement): readonly (readonly [string, string])[] {
  const keys = [
    ['alias', child(device, 'alias')?.attributes['name']],
    ['target', child(device, 'target')?.attributes['dev']],
    ['mac', child(device, 'mac')?.attributes['address']?.toLowerCase()],
    ['type', device.name === 'graphics' || device.name === 'memballoon' ? device.name : undefined],
  ] as const;
  return keys.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]));
}

/** The error for a device that is not there. */
export function missingDevice(wanted: XmlElement): Error {
  const target = child(wanted, 'target')?.attributes['dev'];
  const mac = child(wanted, 'mac')?.attributes['address'];
  const what =
    wanted.name === 'disk'
      ? `device not found: disk ${target ?? '?'} not found`
      : mac === undefined
        ? `device not found: no matching ${wanted.name} device was found`
        : `device not found: no device matching MAC address ${mac} found`;
  return daemonError(ErrorNumber.DEVICE_MISSING, ErrorDomain.QEMU, what);
}

/** Removes a device from a description. */
export function removeDevice(domain: XmlElement, device: XmlElement): void {
  const devices = child(domain, 'devices');
  if (devices !== undefined) devices.children = devices.children.filter((other) => other !== device);
}

/** Adds a device to a description. */
export function addDevice(domain: XmlElement, device: XmlElement): void {
  const devices = child(domain, 'devices');
  if (devices === undefined) domain.children.push({ name: 'devices', attributes: {}, children: [device] });
  else devices.children.push(device);
}

/** Puts a device in the place of another. */
export function replaceDevice(domain: XmlElement, old: XmlElement, device: XmlElement): void {
  const devices = child(domain, 'devices');
  if (devices !== undefined) devices.children = devices.children.map((other) => (other === old ? device : other));
}
