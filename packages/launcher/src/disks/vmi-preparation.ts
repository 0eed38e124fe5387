import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import type { Circumstances, ConverterOptions } from '../converter/circumstances.ts';
import { type LauncherFacts, createCircumstanceCollector } from '../converter/collect-circumstances.ts';
import { completeForLibvirt } from '../converter/complete-for-libvirt.ts';
import { convertVmi } from '../converter/convert.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';
import type { VmiPreparation } from '../domain/sync.ts';
import type { CloudInitData } from './cloud-init-source.ts';
import { needsDefinedDomain } from './cloud-init-image.ts';
import { type EarlyWork, startEarlyWork } from './early-work.ts';
import { linkImageVolumes } from './image-volumes.ts';
import type { DiskDeps } from './ports.ts';
import { type TrackingDeps, ensureTrackingOverlays } from './tracking-overlays.ts';
import { type PreStartHooks, prepareDisks, prepareStart } from './prepare.ts';

/** What the preparation of VMIs needs. */
export interface VmiPreparationDeps extends DiskDeps, TrackingDeps {
  /** CPUs of the launcher's cgroup. */
  readonly readPodCpuSet: () => Promise<readonly number[]>;
  readonly preCloudInitIso?: PreStartHooks['preCloudInitIso'];
  /** libvirt's number of its own release; without it the domain is defined as converted. */
  readonly libvirtVersion?: () => Promise<bigint>;
  /**
   * Time after which the cloud-init image is made beside a define that takes longer; without it, it is made after the
   * define.
   */
  readonly earlyImageMs?: number;
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

/** Creates what turns VMIs into domains that can start: conversion, disks and seed data of one launcher. */
export function createVmiPreparation(
  deps: VmiPreparationDeps,
  config: VmiPreparationConfig,
): VmiPreparation<ConverterOptions> {
  const collector = createCircumstanceCollector(deps, config.facts);
  let circumstances: Circumstances | undefined;
  let cloudInit: CloudInitData | undefined;
  let earlyImage: EarlyWork | undefined;

  function startEarlyImage(vmi: Vmi, spec: DomainSpec, log: DiskDeps['log']): EarlyWork | undefined {
    const data = cloudInit;
    if (deps.earlyImageMs === undefined || data === undefined || needsDefinedDomain(vmi, data)) return undefined;
    return startEarlyWork(deps.earlyImageMs, () => prepareStart({ ...deps, log }, vmi, data, spec));
  }

  async function collect(vmi: Vmi, options: ConverterOptions | undefined): Promise<Circumstances> {
    return collector.collect(vmi, {
      allowEmulation: config.allowEmulation,
      options,
      isMigrationTarget: false,
      hasIommuFd: false,
      cbtOverlays: await ensureTrackingOverlays(deps, vmi),
    });
  }

  return {
    async convert(vmi, options) {
      // The define that it was started beside failed.
      await earlyImage?.cancel();
      earlyImage = undefined;
      if (config.usesImageVolumes) await linkImageVolumes(deps, vmi);
      circumstances = await collect(vmi, options);
      return convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec;
    },
    async preStart(vmi, spec, options, log) {
      circumstances ??= await collect(vmi, options);
      const hooks: PreStartHooks = {
        prepareNetwork: (owner, domain) => deps.prepareNetwork(owner, domain, options),
        ...(deps.preCloudInitIso === undefined ? {} : { preCloudInitIso: deps.preCloudInitIso }),
      };
      const prepared = await prepareDisks({ ...deps, log }, vmi, spec, circumstances, hooks);
      cloudInit = prepared.cloudInit;
      const completed =
        deps.libvirtVersion === undefined
          ? prepared.spec
          : completeForLibvirt(prepared.spec, await deps.libvirtVersion());
      earlyImage = startEarlyImage(vmi, completed, log);
      return completed;
    },
    async beforeStart(vmi, defined, log) {
      const early = earlyImage;
      earlyImage = undefined;
      if (early === undefined) await prepareStart({ ...deps, log }, vmi, cloudInit, defined);
      else await early.finish();
    },
  };
}
