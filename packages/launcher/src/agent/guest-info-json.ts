import { renderJson } from '@virtwire/vm-model';
import type { AgentFacts, AgentFilesystem, AgentNumber, AgentOsInfo, AgentUser } from './types.ts';

/** Users and file systems in a GuestInfo answer; the lists of their own have no limit. */
const GUEST_INFO_LIST_LIMIT = 10;

type Fields = Readonly<Record<string, unknown>>;

/** Leaves out what Go's `omitempty` leaves out: empty texts and lists, zero, false and what is unset. */
function withoutEmpty(fields: Fields): Record<string, unknown> {
  const isEmpty = (value: unknown): boolean =>
    value === undefined || value === '' || value === 0 || value === false || (Array.isArray(value) && !value.length);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function userJson(user: AgentUser): Record<string, unknown> {
  return { userName: user.name, ...withoutEmpty({ domain: user.domain, loginTime: user.loginTime }) };
}

function filesystemJson(fs: AgentFilesystem): Record<string, unknown> {
  const disk = fs.disks.map(({ serial, busType }) => ({ ...withoutEmpty({ serial }), busType }));
  return {
    diskName: fs.name,
    mountPoint: fs.mountpoint,
    fileSystemType: fs.type,
    usedBytes: fs.usedBytes,
    totalBytes: fs.totalBytes,
    ...withoutEmpty({ disk }),
  };
}

function osJson(os: AgentOsInfo | undefined): Record<string, unknown> {
  return withoutEmpty({
    name: os?.Name,
    kernelRelease: os?.KernelRelease,
    version: os?.Version,
    prettyName: os?.PrettyName,
    versionId: os?.VersionId,
    kernelVersion: os?.KernelVersion,
    machine: os?.Machine,
    id: os?.Id,
  });
}

function renderTimezone(timezone: { readonly zone: string; readonly offset: AgentNumber } | undefined): string {
  return `${timezone?.zone ?? ''}, ${String(timezone?.offset ?? 0)}`;
}

/**
 * Body of a GetGuestInfo answer.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetGuestInfo
 */
export function renderGuestInfo(facts: AgentFacts): string {
  const commands = facts.supportedCommands?.map(({ name, enabled }) => ({ name, ...withoutEmpty({ enabled }) }));
  const disks = facts.filesystems?.slice(0, GUEST_INFO_LIST_LIMIT).map(filesystemJson) ?? [];
  return renderJson({
    ...withoutEmpty({
      guestAgentVersion: facts.version,
      supportedCommands: commands,
      hostname: facts.hostname,
    }),
    os: osJson(facts.os),
    timezone: renderTimezone(facts.timezone),
    ...withoutEmpty({ userList: facts.users?.slice(0, GUEST_INFO_LIST_LIMIT).map(userJson) }),
    fsInfo: { disks: disks.length === 0 ? null : disks },
    ...withoutEmpty({ fsFreezeStatus: facts.fsFreezeStatus }),
  });
}

/** Body of a GetUsers answer: all users. */
export function renderUsers(facts: AgentFacts): string {
  return renderJson((facts.users ?? []).map(userJson));
}

/** Body of a GetFilesystems answer: all file systems. */
export function renderFilesystems(facts: AgentFacts): string {
  return renderJson((facts.filesystems ?? []).map(filesystemJson));
}
