export { errnoOf, HOST_ERROR_CODES, HostError } from './errors.ts';
export type { HostErrorCode, HostErrorDetails } from './errors.ts';
export { Descriptor } from './descriptors/descriptor.ts';
export type { SocketMessage } from './descriptors/socket-message.ts';
export { UnixClient } from './descriptors/unix-client.ts';
export type { MessageLimits } from './descriptors/unix-client.ts';
export { copyDescriptors } from './descriptors/copy-descriptors.ts';
export type { OutgoingDescriptors } from './descriptors/copy-descriptors.ts';
export { SafePath } from './paths/safe-path.ts';
export type { NewFile } from './paths/safe-path.ts';
export { splitDevice } from './paths/mknod.ts';
export { listenUnix } from './paths/unix-socket.ts';
export {
  childrenOf,
  listProcesses,
  parseProcessStat,
  readCommandLine,
  readNamespacePid,
  readProcessStat,
} from './process/proc.ts';
export type { ProcessStat } from './process/proc.ts';
export { isMountPoint, parseMountInfo, readMounts } from './process/mountinfo.ts';
export type { MountEntry } from './process/mountinfo.ts';
export { PidHandle } from './process/pid-handle.ts';
export { peerCredentials } from './process/peer.ts';
export type { PeerCredentials } from './process/peer.ts';
export { getLimit, setLimit } from './process/limits.ts';
export type { ResourceLimit } from './process/limits.ts';
export { startReaper } from './process/reaper.ts';
export type { ReapedProcess, ReaperOptions } from './process/reaper.ts';
export { runTool } from './tools/run-tool.ts';
export type { RunToolOptions, ToolResult } from './tools/run-tool.ts';
export { startProcess } from './tools/start-process.ts';
export type { ProcessExit, StartedProcess, StartProcessOptions } from './tools/start-process.ts';
export { NetworkNamespace } from './net/namespace.ts';
export { addToIp, formatIp, isGlobalUnicast, networkOf, parseCidr, parseIp, prefixMask } from './net/ip.ts';
export type { Cidr } from './net/ip.ts';
export type { Link, LinkAddress, OperationalState, Route } from './net/links.ts';
export { parseMac, RouteSocket } from './net/route-socket.ts';
export type { LinkChange, NewLinkKind } from './net/route-socket.ts';
export { createTap } from './net/tap.ts';
export type { NewTap } from './net/tap.ts';
export { readSysctls, writeSysctls } from './net/sysctl.ts';
export { ICMP6_PORT, openBoundIcmp6 } from './net/icmp6.ts';
export type { BoundIcmp6 } from './net/icmp6.ts';
export { openBoundUdp } from './net/udp.ts';
export type { BoundUdp } from './net/udp.ts';
export { bindMount, mount, unmount } from './mount/mount.ts';
export type { MountFlag, MountRequest } from './mount/mount.ts';
