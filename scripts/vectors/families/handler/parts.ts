import { chmodSync, existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeParts } from '@virtwire/handler';
import {
  clusterConfig,
  createHostDisks,
  HandlerError,
  lockedMemoryBytes,
  setUpOwnership,
} from '@virtwire/handler/testing';
import type { LauncherRoot } from '@virtwire/handler/testing';
import type { Vmi } from '@virtwire/vm-model';
import type { CaseInput, TraceEntry } from './case.ts';

/** What the node-side parts of a case work with. */
export interface CaseParts {
  readonly current: () => CaseInput;
  readonly launcherRoot: string;
  readonly note: (entry: TraceEntry) => void;
}

function apiTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function failWith(text: string | undefined): void {
  if (text !== undefined) throw new Error(text);
}

/** The launcher's tree in a temporary directory; owners are only noted. */
function recordedRoot({ launcherRoot, note, current }: CaseParts): LauncherRoot {
  const find = (path: string): void => {
    if (existsSync(join(launcherRoot, path))) return;
    const message = `failed opening ${path} for path root: ${launcherRoot}, relative: ${path}: no such file or directory`;
    throw Object.assign(new Error(message), { code: 'ENOENT', errno: 'ENOENT' });
  };
  return {
    chownToQemu(path) {
      find(path);
      note({ kind: 'node', op: 'chownToQemu', path });
      failWith(current().ownershipErrors?.[path]);
    },
    chmod(path, mode) {
      find(path);
      chmodSync(join(launcherRoot, path), mode);
    },
    list: (path) => (existsSync(join(launcherRoot, path)) ? readdirSync(join(launcherRoot, path)).sort() : []),
  };
}

function containerDiskPart({ current, note }: CaseParts): NodeParts['containerDisks'] {
  return {
    async ready(_vmi, sinceMs) {
      note({ kind: 'node', op: 'containerDisksReady', notInitializedSince: apiTime(sinceMs) });
      failWith(current().containerDisks?.readyError);
      return current().containerDisks?.notReady !== true;
    },
    async mountAndVerify() {
      note({ kind: 'node', op: 'containerDisksMountAndVerify' });
      failWith(current().containerDisks?.mountError);
    },
    async unmount(vmi) {
      note({ kind: 'node', op: 'containerDisksUnmount', uid: vmi.metadata.uid });
      failWith(current().containerDisks?.unmountError);
    },
  };
}

function hotplugPart({ current, note }: CaseParts): NonNullable<NodeParts['hotplug']> {
  return {
    async mount() {
      note({ kind: 'node', op: 'hotplugMount' });
      const { mountError, mountErrorKind } = current().hotplug ?? {};
      if (mountErrorKind === 'waiting') return 'waiting';
      if (mountErrorKind === 'notExist') {
        throw Object.assign(new Error(`${mountError ?? ''}: file does not exist`), { code: 'ENOENT' });
      }
      failWith(mountError);
      return 'mounted';
    },
    async unmount() {
      note({ kind: 'node', op: 'hotplugUnmount' });
      failWith(current().hotplug?.unmountError);
    },
    async unmountAll(vmi) {
      note({ kind: 'node', op: 'hotplugUnmountAll', uid: vmi.metadata.uid });
      failWith(current().hotplug?.unmountAllError);
    },
    async isMounted(vmi, volume) {
      const status = (vmi.status?.volumeStatus ?? []).find((one) => one.name === volume);
      const attachPodUID = status?.hotplugVolume?.attachPodUID ?? '';
      note({ kind: 'node', op: 'hotplugIsMounted', attachPodUID, volume });
      failWith(current().hotplug?.isMountedError);
      return current().hotplug?.mounted?.includes(volume) ?? false;
    },
  };
}

function networkPart({ current, note }: CaseParts): NodeParts['network'] {
  return {
    async setUp(_vmi, networks, launcher) {
      note({ kind: 'node', op: 'networkSetup', networks, launcherPid: launcher.pid });
      const { setupError, critical } = current().network ?? {};
      if (setupError === undefined) return;
      throw critical === true
        ? new HandlerError('CriticalNetwork', `Critical network error: ${setupError}`)
        : new Error(setupError);
    },
    async tearDown(vmi) {
      note({ kind: 'node', op: 'networkTeardown', uid: vmi.metadata.uid });
      failWith(current().network?.teardownError);
    },
    async podInterface(_vmi, name) {
      const found = current().network?.podInterfaces?.[name];
      if (found === undefined) return undefined;
      const podIP = found.podIP ?? '';
      return { podIP, podIPs: found.podIPs ?? (podIP === '' ? [] : [podIP]) };
    },
  };
}

function selinux({ current }: CaseParts): NodeParts['selinuxContext'] {
  return async () => {
    const { present, context, contextError, error } = current().selinux ?? {};
    failWith(error ?? contextError);
    return present === true ? (context ?? '') : 'none';
  };
}

function ownership(parts: CaseParts): NodeParts['devices'] {
  const events = {
    event: (_object: unknown, type: string, reason: string, message: string) =>
      parts.note({ kind: 'event', type, reason, message }),
  };
  return {
    async prepare(vmi, launcher) {
      const config = clusterConfig(parts.current().kubevirt);
      const giveToQemu = (_file: unknown, path: string): void => parts.note({ kind: 'node', op: 'chownToQemu', path });
      await setUpOwnership(recordedRoot(parts), vmi, {
        hypervisorDevice: config.hypervisorDevice,
        useEmulation: config.useEmulation,
        createHostDisks: () => createHostDisks({ events, config: () => config, giveToQemu }, vmi, launcher),
      });
    },
  };
}

function notedByUid({ note }: CaseParts, op: string) {
  return (uid: string): void => note({ kind: 'node', op, uid });
}

/** The node-side parts of a case: those that the folder's README calls faked; ownership and host disks are real. */
export function createParts(parts: CaseParts): NodeParts {
  const { current, note, launcherRoot } = parts;
  const stopMetrics = notedByUid(parts, 'downwardMetricsStop');
  return {
    containerDisks: containerDiskPart(parts),
    hotplug: hotplugPart(parts),
    network: networkPart(parts),
    devices: ownership(parts),
    memlock: {
      async adjust(vmi) {
        failWith(current().memlockError);
        const ratio = clusterConfig(current().kubevirt).guestMemoryOverheadRatio;
        note({ kind: 'node', op: 'setMemlock', bytes: Number(lockedMemoryBytes(vmi, ratio)) });
      },
    },
    cgroup: { open: async () => failWith(current().cgroupError) },
    cpus: {
      async isolateEmulator(_vmi, cpuSet) {
        note({ kind: 'node', op: 'cgroupCreateChild', child: 'housekeeping', subsystem: 'cpuset' });
        failWith(current().housekeepingError);
        if (cpuSet !== undefined) note({ kind: 'node', op: 'cgroupSetCpuSet', child: 'housekeeping' });
      },
      async makeRealtime() {
        note({ kind: 'node', op: 'realtimeVCPUs' });
      },
      async affinePit() {
        note({ kind: 'node', op: 'affinePitThread' });
      },
    },
    downwardMetrics: {
      async start(_vmi, launcher) {
        note({ kind: 'node', op: 'downwardMetricsStart', launcherPid: launcher.pid });
        failWith(current().downwardMetricsError);
      },
      stop: (vmi: Vmi) => stopMetrics(vmi.metadata.uid),
    },
    migrationProxies: {
      stopTarget: notedByUid(parts, 'migrationProxyStopTarget'),
      stopSource: notedByUid(parts, 'migrationProxyStopSource'),
    },
    hooks: {
      async run(point) {
        note({ kind: 'nodeHook', point });
        failWith(current().nodeHookErrors?.[point]);
      },
    },
    async detectIsolation() {
      failWith(current().isolationError);
      return { pid: 4242, ppid: 4241, rootPath: launcherRoot };
    },
    selinuxContext: selinux(parts),
    fileSize: async (_launcher, path) => lstatSync(join(launcherRoot, path)).size,
  };
}
