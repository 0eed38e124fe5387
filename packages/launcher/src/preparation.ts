import { accessSync, closeSync, constants, openSync, readSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { runTool } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import type { SyncOptions } from './cmd-server/complete-options.ts';
import type { LauncherFlags } from './config/flags.ts';
import { launcherPaths, QEMU_UID } from './config/paths.ts';
import type { Architecture } from './converter/architecture.ts';
import { readPodCpuSet } from './converter/collect-circumstances.ts';
import type { LauncherFacts } from './converter/collect-circumstances.ts';
import { createImagePort } from './disks/image-info.ts';
import type { DiskPaths, ToolPort } from './disks/ports.ts';
import type { PreStartHooks } from './disks/prepare.ts';
import { createVmiPreparation } from './disks/vmi-preparation.ts';
import type { VmiPreparationConfig, VmiPreparationDeps } from './disks/vmi-preparation.ts';
import { createTargetPreparation } from './disks/target-preparation.ts';
import { warmUpPreparation } from './disks/warm-up.ts';
import type { VmiPreparation } from './domain/sync.ts';
import { LauncherError } from './errors.ts';
import type { IommuDescriptor } from './iommu/iommu-descriptor.ts';
import { createIommuDescriptor } from './iommu/iommu-descriptor.ts';
import type { MigrationWorld } from './migration/parts.ts';
import type { TargetPreparation } from './migration/target.ts';
import type { GuestNetwork, GuestNetworkDeps } from './network/guest-network.ts';
import { createGuestNetwork } from './network/guest-network.ts';
import { STANDALONE_VMI } from './standalone/standalone-vmi.ts';

const QEMU_USER = { uid: QEMU_UID, gid: QEMU_UID };

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { x64: 'amd64', arm64: 'arm64', s390x: 's390x' };

/** What turns VMIs into domains that can start, and what it keeps running for them. */
export interface Preparation extends VmiPreparation<SyncOptions>, TargetPreparation, AsyncDisposable {
  /** What migrations use of it. */
  readonly migration: Omit<MigrationWorld, 'calls'>;
  readonly tools: ToolPort;
  readonly iommu: IommuDescriptor;
  /** Gets ready for the first VM while nobody waits for it. */
  warmUp(): Promise<void>;
}

/** More than the kernel has to say of one CPU. */
const CPU_BYTES = 16_384;

/**
 * True when the hypervisor can be used now: its device can be opened and, for KVM, this machine's CPUs can virtualise. A
 * node may have /dev/kvm and yet no guest that survives with it. Below Hyper-V the CPUs do not say what they can.
 *
 * @param root of the file system with the device and the kernel's word on the CPUs.
 */
export function hasHypervisor({ hypervisor }: Pick<LauncherFlags, 'hypervisor'>, root = '/'): boolean {
  const isKvm = hypervisor !== 'hyperv-direct';
  try {
    accessSync(join(root, isKvm ? 'dev/kvm' : 'dev/mshv'), constants.R_OK | constants.W_OK);
  } catch {
    return false;
  }
  return !isKvm || process.arch !== 'x64' || /^flags\s*:.*\b(vmx|svm)\b/m.test(firstCpu(join(root, 'proc/cpuinfo')));
}

/** All CPUs are like the first; asked for all of them, a large node's kernel takes milliseconds, at each sync. */
function firstCpu(path: string): string {
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(CPU_BYTES);
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, CPU_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}

function architectureOfHost(): Architecture {
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new LauncherError('BadFlag', `unsupported architecture: ${process.arch}`);
  return architecture;
}

function diskPaths(flags: LauncherFlags): DiskPaths {
  return {
    privateDir: flags.privateDir,
    ephemeralDir: flags.ephemeralDiskDir,
    containerDiskDir: flags.containerDiskDir,
    hotplugDir: flags.hotplugDiskDir.replace(/\/+$/, ''),
    emptyDiskDir: join(flags.libvirtRunDir, 'empty-disks'),
    imageVolumeDir: '/var/run/kubevirt-image-volume',
    kernelBootDir: '/var/run/kubevirt-kernel-boot',
    serviceAccountDir: '/var/run/secrets/kubernetes.io/serviceaccount/',
  };
}

function factsOf(flags: LauncherFlags, env: NodeJS.ProcessEnv): LauncherFacts {
  return {
    hostArchitecture: architectureOfHost(),
    hypervisor: flags.hypervisor === 'hyperv-direct' ? 'hyperv-direct' : 'kvm',
    // The handler opens the device to the launcher's user right before the first sync, so it is looked at each time.
    get hypervisorDeviceAvailable() {
      return hasHypervisor(flags);
    },
    allowCrossArchEmulation: flags.allowCrossArchEmulation,
    firmwareAutoSelection: flags.firmwareAutoSelection,
    firmwareDir: flags.ovmfPath,
    // Of the environment alone: the flag says how much the launcher itself logs.
    logVerbosity: Number(env['VIRT_LAUNCHER_LOG_VERBOSITY'] ?? 0),
    paths: diskPaths(flags),
    environment: env,
    hasLibvirtHookServer: flags.libvirtHookServerAndClient,
  };
}

/**
 * Creates the preparation of this launcher's VM: conversion, disks, and the launcher's part of the pod network.
 *
 * @param libvirtVersion the daemon's release, which decides what it must be told.
 * @param pod the pod's links and sidecars; its `onFailure` is told when a DHCP server dies, without which the guest loses its address.
 */
export function createPreparation(
  flags: LauncherFlags,
  env: NodeJS.ProcessEnv,
  log: Logger,
  libvirtVersion: () => Promise<bigint>,
  pod: Omit<GuestNetworkDeps, 'log'> & Pick<PreStartHooks, 'preCloudInitIso'>,
): Preparation {
  const network: GuestNetwork = createGuestNetwork(
    { ...pod, log },
    { privateDir: flags.privateDir, resolvConfPath: '/etc/resolv.conf', hostname: hostname() },
  );
  const tools: ToolPort = {
    async run(file, args, options) {
      await runTool(file, args, options);
    },
  };
  const iommu = createIommuDescriptor(launcherPaths(flags).iommuSocket, log);
  const shared = { images: createImagePort(), paths: diskPaths(flags), qemuUser: QEMU_USER, libvirtVersion };
  const deps: VmiPreparationDeps = {
    ...shared,
    preCloudInitIso: pod.preCloudInitIso,
    tools,
    log,
    readPodCpuSet,
    receiveIommuDescriptor: () => iommu.receive(),
    makesImageEarly: true,
    async prepareNetwork(vmi, spec, options) {
      const interfaces = spec.Devices.Interfaces ?? [];
      const attachments = options?.interfaceDomainAttachment ?? {};
      const completed = await network.prepare(vmi, interfaces, attachments);
      return interfaces.length === 0 ? spec : { ...spec, Devices: { ...spec.Devices, Interfaces: completed } };
    },
  };
  const config: VmiPreparationConfig = {
    facts: factsOf(flags, env),
    // A launcher without a handler was not started by a controller that knows the node.
    allowEmulation: flags.allowEmulation || env[STANDALONE_VMI] !== undefined,
    usesImageVolumes: flags.imageVolume,
  };
  return {
    ...createVmiPreparation(deps, config),
    ...createTargetPreparation(deps, config),
    migration: shared,
    tools,
    iommu,
    warmUp: () => warmUpPreparation({ tools, log }),
    async [Symbol.asyncDispose]() {
      iommu[Symbol.dispose]();
      await network.close();
    },
  };
}
