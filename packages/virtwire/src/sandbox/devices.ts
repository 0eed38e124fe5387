import { readFileSync, statSync } from 'node:fs';
import { hasCode } from '../errors.ts';

/** A character device that a launcher may use. */
export interface HostDevice {
  readonly path: string;
  readonly major: number;
  readonly minor: number;
}

const TUN = { path: '/dev/net/tun', major: 10, minor: 200 };
const MISC_MAJOR = 10;

/** Minor number of the misc device `name`, from the text of /proc/misc. */
export function parseMiscMinor(text: string, name: string): number | undefined {
  for (const line of text.split('\n')) {
    const [minor, device] = line.trim().split(/\s+/);
    if (device === name) return Number(minor);
  }
  return undefined;
}

/** The device `path` if the host has it, with the kernel's own number. */
function miscDevice(path: string, name: string, miscText: string): HostDevice | undefined {
  const minor = parseMiscMinor(miscText, name);
  if (minor === undefined) return undefined;
  try {
    return statSync(path).isCharacterDevice() ? { path, major: MISC_MAJOR, minor } : undefined;
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return undefined;
    throw caught;
  }
}

/**
 * The devices a launcher gets on this machine: tun always, vhost-net where the kernel has it, kvm only when it was
 * proved to work.
 */
export function launcherDevices(kvmWorks: boolean): HostDevice[] {
  const miscText = readFileSync('/proc/misc', 'utf8');
  const optional = [
    kvmWorks ? miscDevice('/dev/kvm', 'kvm', miscText) : undefined,
    miscDevice('/dev/vhost-net', 'vhost-net', miscText),
  ];
  return [TUN, ...optional.filter((device) => device !== undefined)];
}
