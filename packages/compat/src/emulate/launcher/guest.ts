import type { DomainInterface, DomainInterfaceStatus, GuestOSInfo } from '@virtwire/vm-model';

import type { Fields } from '../schema/release-schema.ts';

/** What the agent says of the guest's system. */
export const GUEST_OS: GuestOSInfo = {
  Name: 'Emulated Guest',
  KernelRelease: '6.12.0-emulated',
  Version: '1.0 (Test)',
  PrettyName: 'Emulated Guest 1.0',
  VersionId: '1.0',
  KernelVersion: '#1 SMP',
  Machine: 'x86_64',
  Id: 'emulated',
};

const COMMANDS = [
  'guest-ping',
  'guest-info',
  'guest-exec',
  'guest-exec-status',
  'guest-fsfreeze-freeze',
  'guest-get-users',
];

/** The interfaces as the agent sees them. */
export function guestInterfaces(interfaces: readonly DomainInterface[]): DomainInterfaceStatus[] {
  return interfaces.map(({ MAC }, index) => ({
    Mac: MAC?.MAC ?? '',
    Ip: `10.0.2.${index + 2}`,
    IPs: [`10.0.2.${index + 2}`],
    InterfaceName: `eth${index}`,
  }));
}

/** GetGuestInfo's document; all empty without an agent. @source releases.json eras.guestInfoErrors; wire.md 9 GuestInfo */
export function guestInfo(isConnected: boolean, isFrozen: boolean, hasDisks: boolean): string {
  if (!isConnected) return JSON.stringify({ os: {}, timezone: ', 0', fsInfo: { disks: null } });
  return JSON.stringify({
    guestAgentVersion: '10.0.0',
    supportedCommands: COMMANDS.map((name) => ({ name, enabled: true })),
    hostname: 'emulated-guest',
    os: {
      name: GUEST_OS.Name,
      kernelRelease: GUEST_OS.KernelRelease,
      version: GUEST_OS.Version,
      prettyName: GUEST_OS.PrettyName,
      versionId: GUEST_OS.VersionId,
      kernelVersion: GUEST_OS.KernelVersion,
      machine: GUEST_OS.Machine,
      id: GUEST_OS.Id,
    },
    timezone: 'UTC, 0',
    fsInfo: { disks: guestFilesystems(hasDisks) },
    fsFreezeStatus: isFrozen ? 'frozen' : 'thawed',
  });
}

/** GetFilesystems' list; `disk` is known from v1.2 on. @source wire.md 9 filesystem */
export function guestFilesystems(hasDisks: boolean): readonly Fields[] {
  const filesystem = {
    diskName: 'vda',
    mountPoint: '/',
    fileSystemType: 'ext4',
    usedBytes: 13_312,
    totalBytes: 61_629_440,
  };
  return [hasDisks ? { ...filesystem, disk: [{ busType: 'virtio' }] } : filesystem];
}
