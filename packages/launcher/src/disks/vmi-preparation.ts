import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import type { Circumstances, ConverterOptions } from '../converter/circumstances.ts';
import { type LauncherFacts, createCircumstanceCollector } from '../converter/collect-circumstances.ts';
import { completeForLibvirt } from '../converter/complete-for-libvirt.ts';
import { convertVmi } from '../converter/convert.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';
import type { VmiPreparation } from '../domain/sync.ts';
import type { CloudInitData } from './cloud-init-source.ts';
import { linkImageVolumes } from './image-volumes.ts';
import type { DiskDeps } from './ports.ts';
import { type PreStartHooks, prepareDisks, prepareStart } from './prepare.ts';

/** What the preparation of VMIs needs. */
export interface VmiPreparationDeps extends DiskDeps {
  /** CPUs of the launcher's cgroup. */
  readonly readPodCpuSet: () => Promise<readonly number[]>;
  readonly preCloudInitIso?: PreStartHooks['preCloudInitIso'];
  /** libvirt's number of its own release; without it the domain is defined as converted. */
  readonly libvirtVersion?: () => Promise<bigint>;
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

  async function collect(vmi: Vmi, options: ConverterOptions | undefined): Promise<Circumstances> {
    return collector.collect(vmi, {
      allowEmulation: config.allowEmulation,
      options,
      isMigrationTarget: false,
      hasIommuFd: false,
      cbtOverlays: new Map(),
    });
  }

  return {
    async convert(vmi, options) {
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
      if (deps.libvirtVersion === undefined) return prepared.spec;
      return completeForLibvirt(prepared.spec, await deps.libvirtVersion());
    },
    async beforeStart(vmi, defined, log) {
      await prepareStart({ ...deps, log }, vmi, cloudInit, defined);
    },
  };
}
