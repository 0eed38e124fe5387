import { emptyDomain } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import type { Circumstances, ConverterOptions } from '../converter/circumstances.ts';
import {
  type CollectorDeps,
  createCircumstanceCollector,
  type LauncherFacts,
  networkDevices,
} from '../converter/collect-circumstances.ts';
import { completeForLibvirt } from '../converter/complete-for-libvirt.ts';
import { convertVmi } from '../converter/convert.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';
import { sriovHostDevices } from '../converter/sriov.ts';
import type { VmiPreparation } from '../domain/sync.ts';
import type { CloudInitData } from './cloud-init-source.ts';
import { needsDefinedDomain } from './cloud-init-image.ts';
import { linkImageVolumes } from './image-volumes.ts';
import { createDiskPlug } from './plug.ts';
import type { DiskDeps } from './ports.ts';
import { type TrackingDeps, ensureTrackingOverlays } from './tracking-overlays.ts';
import { type PreStartHooks, prepareDisks, prepareStart } from './prepare.ts';

/** What the preparation of VMIs needs. */
export interface VmiPreparationDeps extends DiskDeps, TrackingDeps, Omit<CollectorDeps, 'images'> {
  readonly preCloudInitIso?: PreStartHooks['preCloudInitIso'];
  /** libvirt's number of its own release; without it the domain is defined as converted. */
  readonly libvirtVersion?: () => Promise<bigint>;
  /**
   * Makes the cloud-init image beside everything that comes before the start, where it does not depend on the define;
   * the model makes it after the define, and the tool takes a tenth of a second whatever it packs.
   */
  readonly makesImageEarly?: boolean;
  /** Second phase of the pod network: gives the domain's interfaces their taps, MACs and MTUs. */
  readonly prepareNetwork: (vmi: Vmi, spec: DomainSpec, options: ConverterOptions | undefined) => Promise<DomainSpec>;
}

/** What a launcher was started with. */
export interface VmiPreparationConfig {
  readonly facts: LauncherFacts;
  readonly allowEmulation: boolean;
  /** Container disks and kernels come as Kubernetes image volumes. */
  readonly usesImageVolumes: boolean;
}

/** What a running VM needs of its pod. */
function liveParts(
  deps: VmiPreparationDeps,
): Pick<VmiPreparation<ConverterOptions>, 'devices' | 'hostDevices' | 'podCpuSet'> {
  return {
    devices: {
      ...createDiskPlug(deps),
      async completeInterfaces(vmi, Interfaces, options) {
        const spec = emptyDomain().Spec;
        const given = { ...spec, Devices: { ...spec.Devices, Interfaces: [...Interfaces] } };
        return (await deps.prepareNetwork(vmi, given, options)).Devices.Interfaces ?? [];
      },
    },
    podCpuSet: deps.readPodCpuSet,
    async hostDevices(vmi) {
      return sriovHostDevices(vmi, { isMigrationTarget: false, networkInfo: await networkDevices(deps, vmi) });
    },
  };
}

/** Creates what turns VMIs into domains that can start: conversion, disks and seed data of one launcher. */
export function createVmiPreparation(
  deps: VmiPreparationDeps,
  config: VmiPreparationConfig,
): VmiPreparation<ConverterOptions> {
  const collector = createCircumstanceCollector(deps, config.facts);
  let circumstances: Circumstances | undefined;
  let cloudInit: CloudInitData | undefined;
  let earlyImage: Promise<void> | undefined;

  function startImage(vmi: Vmi, data: CloudInitData, spec: DomainSpec, log: DiskDeps['log']): void {
    if (deps.makesImageEarly !== true || needsDefinedDomain(vmi, data)) return;
    earlyImage = prepareStart({ ...deps, log }, vmi, data, spec);
    // Whoever waits for it gets the failure.
    earlyImage.catch(() => undefined);
  }

  async function collect(vmi: Vmi, options: ConverterOptions | undefined): Promise<Circumstances> {
    return collector.collect(vmi, {
      allowEmulation: config.allowEmulation,
      options,
      isMigrationTarget: false,
      cbtOverlays: new Map(),
    });
  }

  return {
    ...liveParts(deps),
    async convert(vmi, options) {
      // Left over from a sync that failed.
      await earlyImage?.catch(() => undefined);
      earlyImage = undefined;
      if (config.usesImageVolumes) await linkImageVolumes(deps, vmi);
      circumstances = await collect(vmi, options);
      const context = resolveConverterContext(vmi, circumstances);
      // Nothing is made for a VM that cannot be.
      const cbtOverlays = await ensureTrackingOverlays(deps, vmi);
      return convertVmi(vmi, { ...context, circumstances: { ...circumstances, cbtOverlays } }).Spec;
    },
    async preStart(vmi, spec, options, log) {
      circumstances ??= await collect(vmi, options);
      const hooks: PreStartHooks = {
        prepareNetwork: (owner, domain) => deps.prepareNetwork(owner, domain, options),
        onCloudInit: (data) => startImage(vmi, data, spec, log),
        ...(deps.preCloudInitIso === undefined ? {} : { preCloudInitIso: deps.preCloudInitIso }),
      };
      const prepared = await prepareDisks({ ...deps, log }, vmi, spec, circumstances, hooks);
      cloudInit = prepared.cloudInit;
      if (deps.libvirtVersion === undefined) return prepared.spec;
      return completeForLibvirt(prepared.spec, await deps.libvirtVersion());
    },
    async beforeStart(vmi, defined, log) {
      const early = earlyImage;
      earlyImage = undefined;
      if (early === undefined) await prepareStart({ ...deps, log }, vmi, cloudInit, defined);
      else await early;
    },
  };
}
