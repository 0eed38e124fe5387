import type { GuestFilesystem, GuestInfo, GuestUser } from '@virtwire/vm-model/payloads';
import { guestFilesystems, guestInfo, guestUsers } from '@virtwire/vm-model/payloads';
import type { AgentFacts, AgentFilesystem, AgentOsInfo, AgentUser } from './types.ts';

/** Users and file systems in a GuestInfo answer; the lists of their own have no limit. */
const GUEST_INFO_LIST_LIMIT = 10;

function toUser({ name, domain, loginTime }: AgentUser): GuestUser {
  return { userName: name, domain, loginTime };
}

function toFilesystem({ name, mountpoint, type, usedBytes, totalBytes, disks }: AgentFilesystem): GuestFilesystem {
  return { diskName: name, mountPoint: mountpoint, fileSystemType: type, usedBytes, totalBytes, disk: disks };
}

function toOs(os: AgentOsInfo | undefined): GuestInfo['os'] {
  return {
    name: os?.Name ?? '',
    kernelRelease: os?.KernelRelease ?? '',
    version: os?.Version ?? '',
    prettyName: os?.PrettyName ?? '',
    versionId: os?.VersionId ?? '',
    kernelVersion: os?.KernelVersion ?? '',
    machine: os?.Machine ?? '',
    id: os?.Id ?? '',
  };
}

/**
 * Body of a GetGuestInfo answer.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetGuestInfo
 */
export function renderGuestInfo(facts: AgentFacts): string {
  const disks = facts.filesystems?.slice(0, GUEST_INFO_LIST_LIMIT).map(toFilesystem) ?? [];
  return guestInfo.render({
    ...guestInfo.zero(),
    guestAgentVersion: facts.version ?? '',
    supportedCommands: facts.supportedCommands ?? null,
    hostname: facts.hostname ?? '',
    os: toOs(facts.os),
    timezone: `${facts.timezone?.zone ?? ''}, ${String(facts.timezone?.offset ?? 0)}`,
    userList: facts.users?.slice(0, GUEST_INFO_LIST_LIMIT).map(toUser) ?? null,
    fsInfo: { disks: disks.length === 0 ? null : disks },
    fsFreezeStatus: facts.fsFreezeStatus ?? '',
  });
}

/** Body of a GetUsers answer: all users. */
export function renderUsers(facts: AgentFacts): string {
  return guestUsers.render((facts.users ?? []).map(toUser));
}

/** Body of a GetFilesystems answer: all file systems. */
export function renderFilesystems(facts: AgentFacts): string {
  return guestFilesystems.render((facts.filesystems ?? []).map(toFilesystem));
}
