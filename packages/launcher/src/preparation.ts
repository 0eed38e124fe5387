import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { runTool } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import type { SyncOptions } from './cmd-server/complete-options.ts';
import type { LauncherFlags } from './config/flags.ts';
import { QEMU_UID } from './config/paths.ts';
import type { Architecture } from './converter/architecture.ts';
import { readPodCpuSet } from './converter/collect-circumstances.ts';
import type { LauncherFacts } from './converter/collect-circumstances.ts';
import { createImagePort } from './disks/image-info.ts';
import type { DiskPaths } from './disks/ports.ts';
import { createVmiPreparation } from './disks/vmi-preparation.ts';
import type { VmiPreparation } from './domain/sync.ts';
import { LauncherError } from './errors.ts';
import type { GuestNetwork } from './network/guest-network.ts';
import { createGuestNetwork } from './network/guest-network.ts';

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { x64: 'amd64', arm64: 'arm64', s390x: 's390x' };

/** What turns VMIs into domains that can start, and what it keeps running for them. */
export interface Preparation extends VmiPreparation<SyncOptions>, AsyncDisposable {}

/** True when the hypervisor's device is there for this process to open. */
export function hasHypervisorDevice(flags: LauncherFlags): boolean {
  return existsSync(flags.hypervisor === 'kvm' ? '/dev/kvm' : '/dev/mshv');
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

function factsOf(flags: LauncherFlags, env: NodeJS.ProcessEnv, hasDevice: boolean): LauncherFacts {
  return {
    hostArchitecture: architectureOfHost(),
    hypervisor: flags.hypervisor === 'hyperv-direct' ? 'hyperv-direct' : 'kvm',
    hypervisorDeviceAvailable: hasDevice,
    allowCrossArchEmulation: flags.allowCrossArchEmulation,
    firmwareAutoSelection: flags.firmwareAutoSelection,
    firmwareDir: flags.ovmfPath,
    logVerbosity: Number(env['VIRT_LAUNCHER_LOG_VERBOSITY'] ?? flags.verbosity),
    paths: diskPaths(flags),
    environment: env,
    hasLibvirtHookServer: flags.libvirtHookServerAndClient,
  };
}

/**
 * Creates the preparation of this launcher's VM: conversion, disks, and the launcher's part of the pod network.
 *
 * @param onNetworkFailure told when a DHCP server dies, without which the guest loses its address.
 */
export function createPreparation(
  flags: LauncherFlags,
  env: NodeJS.ProcessEnv,
  hasDevice: boolean,
  log: Logger,
  onNetworkFailure: (error: Error) => void,
): Preparation {
  const network: GuestNetwork = createGuestNetwork(
    { log, onFailure: onNetworkFailure },
    { privateDir: flags.privateDir, resolvConfPath: '/etc/resolv.conf', hostname: hostname() },
  );
  const preparation = createVmiPreparation(
    {
      tools: {
        async run(file, args, options) {
          await runTool(file, args, options);
        },
      },
      images: createImagePort(),
      paths: diskPaths(flags),
      qemuUser: { uid: QEMU_UID, gid: QEMU_UID },
      log,
      readPodCpuSet,
      async prepareNetwork(vmi, spec, options) {
        const interfaces = spec.Devices.Interfaces ?? [];
        const attachments = options?.interfaceDomainAttachment ?? {};
        const completed = await network.prepare(vmi, interfaces, attachments);
        return interfaces.length === 0 ? spec : { ...spec, Devices: { ...spec.Devices, Interfaces: completed } };
      },
    },
    {
      facts: factsOf(flags, env, hasDevice),
      allowEmulation: flags.allowEmulation,
      usesImageVolumes: flags.imageVolume,
    },
  );
  return { ...preparation, [Symbol.asyncDispose]: () => network.close() };
}
