import { flag, float64, int64, list, omitEmpty, text } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);

const userFields = { userName: text, domain: some, loginTime: omitEmpty(float64) };
const filesystemDisk = struct('VirtualMachineInstanceFileSystemDisk', { serial: some, busType: text });
const filesystemFields = {
  diskName: text,
  mountPoint: text,
  fileSystemType: text,
  usedBytes: int64,
  totalBytes: int64,
  disk: omitEmpty(list(filesystemDisk)),
};
const user = struct('VirtualMachineInstanceGuestOSUser', userFields);
const filesystem = struct('VirtualMachineInstanceFileSystem', filesystemFields);
const guestInfoFields = {
  kind: some,
  apiVersion: some,
  guestAgentVersion: some,
  supportedCommands: omitEmpty(list(struct('GuestAgentCommandInfo', { name: text, enabled: omitEmpty(flag) }))),
  hostname: some,
  os: struct('VirtualMachineInstanceGuestOSInfo', {
    name: some,
    kernelRelease: some,
    version: some,
    prettyName: some,
    versionId: some,
    kernelVersion: some,
    machine: some,
    id: some,
  }),
  timezone: some,
  userList: omitEmpty(list(user)),
  fsInfo: struct('VirtualMachineInstanceFileSystemInfo', { disks: list(filesystem) }),
  fsFreezeStatus: some,
};

/** Someone who is logged in to the guest. */
export type GuestUser = ObjectOf<typeof userFields>;
/** A file system of the guest; `disk` since v1.2. */
export type GuestFilesystem = ObjectOf<typeof filesystemFields>;
/** What the guest agent says of the guest. */
export type GuestInfo = ObjectOf<typeof guestInfoFields>;

/** Answer of GetGuestInfo. @source KubeVirt v1.9.0 VirtualMachineInstanceGuestAgentInfo */
export const guestInfo = payload(struct('VirtualMachineInstanceGuestAgentInfo', guestInfoFields));
/** Answer of GetUsers: a list, empty rather than null. */
export const guestUsers = payload(list(user));
/** Answer of GetFilesystems: a list, empty rather than null. */
export const guestFilesystems = payload(list(filesystem));
