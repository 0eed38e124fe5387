import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import type { Circumstances } from '../converter/circumstances.ts';
import { makeCloudInitDir, writeCloudInitImage, writeEmptyCloudInitImage } from './cloud-init-image.ts';
import { type CloudInitData, readCloudInit } from './cloud-init-source.ts';
import { volumeSize, writeConfigDisks } from './config-disks.ts';
import { writeDownwardMetricsDisk } from './downward-metrics.ts';
import { withDriverModes } from './driver-modes.ts';
import { diskError } from './files.ts';
import { growDisksOffline } from './growth.ts';
import { writeIgnition } from './ignition.ts';
import { ensureContainerDiskOverlays, ensureEmptyDisks, ensureEphemeralOverlays } from './overlays.ts';
import type { DiskDeps } from './ports.ts';

/** Steps of others that have their place between those of the disks. */
export interface PreStartHooks {
  /** Sidecars may change the seed data. */
  readonly preCloudInitIso?:
    ((vmi: Vmi, data: CloudInitData | undefined) => Promise<CloudInitData | undefined>) | undefined;
  /** Told the seed data as soon as it is known, and its directory is there. */
  readonly onCloudInit?: (data: CloudInitData) => void;
  /** Second phase of the pod network: completes the domain's interfaces. */
  readonly prepareNetwork: (vmi: Vmi, spec: DomainSpec) => Promise<DomainSpec>;
}

/** What the preparation made, for the define and for the start that follows. */
export interface PreparedDisks {
  readonly spec: DomainSpec;
  readonly cloudInit: CloudInitData | undefined;
}

/**
 * Makes every file that the domain refers to, in the model's order, and completes the domain with what depends on
 * them. May be called again after a failure: what is there already stays.
 *
 * @throws {LauncherError} `DiskFailed` with the model's prefix for the step.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:892, preStartHook
 */
export async function prepareDisks(
  deps: DiskDeps,
  vmi: Vmi,
  spec: DomainSpec,
  circumstances: Pick<Circumstances, 'containerDisks' | 'blockVolumes' | 'isMigrationTarget'>,
  hooks: PreStartHooks,
  signal?: AbortSignal,
): Promise<PreparedDisks> {
  const step = async <T>(doing: string, action: () => Promise<T>): Promise<T> => {
    signal?.throwIfAborted();
    try {
      return await action();
    } catch (error) {
      throw diskError(doing, error);
    }
  };
  const cloudInit = await prepareCloudInit(deps, vmi, hooks, step);
  if (cloudInit !== undefined && !circumstances.isMigrationTarget) hooks.onCloudInit?.(cloudInit);
  await step('', () => writeIgnition(deps, vmi));
  const networked = await step('preparing the pod network failed: ', () => hooks.prepareNetwork(vmi, spec));
  await step('preparing ephemeral container disk images failed: ', () =>
    ensureContainerDiskOverlays(deps, vmi, circumstances.containerDisks),
  );
  await step('preparing ephemeral images failed: ', () =>
    ensureEphemeralOverlays(deps, vmi, circumstances.blockVolumes),
  );
  await step('creating empty disks failed: ', () => ensureEmptyDisks(deps, vmi));
  await step('', () => writeConfigDisks(deps, vmi, circumstances.isMigrationTarget));
  // The model's spelling.
  await step('failed to craete downwardMetric disk: ', () => writeDownwardMetricsDisk(deps, vmi));
  const completed = await step('', () => withDriverModes(deps, networked));
  await growDisksOffline(deps, completed);
  return { spec: completed, cloudInit };
}

/** Makes what needs the defined domain: the cloud-init image. */
export async function prepareStart(
  deps: DiskDeps,
  vmi: Vmi,
  cloudInit: CloudInitData | undefined,
  defined: DomainSpec,
): Promise<void> {
  if (cloudInit !== undefined) await writeCloudInitImage(deps, vmi, cloudInit, defined);
}

/**
 * Makes room for the seed image that comes from the source of a migration. One that the source knows no size of is made
 * here instead.
 */
export async function prepareIncomingSeed(
  deps: DiskDeps,
  vmi: Vmi,
  cloudInit: CloudInitData | undefined,
  spec: DomainSpec,
): Promise<void> {
  if (cloudInit === undefined) return;
  if (volumeSize(vmi, cloudInit.volume) === 0) await writeCloudInitImage(deps, vmi, cloudInit, spec);
  else await writeEmptyCloudInitImage(deps, vmi, cloudInit);
}

async function prepareCloudInit(
  deps: DiskDeps,
  vmi: Vmi,
  hooks: PreStartHooks,
  step: <T>(doing: string, action: () => Promise<T>) => Promise<T>,
): Promise<CloudInitData | undefined> {
  const read = await step('ReadCloudInitVolumeDataSource failed: ', () => readCloudInit(deps, vmi));
  deps.log.info('Starting PreCloudInitIso hook');
  const { preCloudInitIso } = hooks;
  const data =
    preCloudInitIso === undefined
      ? read
      : await step('PreCloudInitIso hook failed: ', () => preCloudInitIso(vmi, read));
  if (data !== undefined) await step('PrepareLocalPath failed: ', () => makeCloudInitDir(deps, vmi, data));
  return data;
}
