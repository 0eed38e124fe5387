import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { claimNameOf } from '@virtwire/vm-model';
import type { Vmi, Volume } from '@virtwire/vm-model';
import type { SandboxBind } from '../sandbox/oci-config.ts';
import type { Problem } from './problem.ts';

/** Where a launcher looks for what the manifest names. `@source KubeVirt v1.9.0 pkg/virt-controller/services/rendervolumes.go` */
const IMAGE_VOLUMES = '/var/run/kubevirt-image-volume';
const KERNEL_BOOT = '/var/run/kubevirt-kernel-boot';
const VMI_DISKS = '/var/run/kubevirt-private/vmi-disks';

/** Files of a VM: what its sandbox binds, and what is missing. */
export interface VmFiles {
  readonly binds: readonly SandboxBind[];
  /** Directories to make before they are bound. */
  readonly toCreate: readonly string[];
  readonly problems: readonly Problem[];
}

/** Where relative paths of a manifest start, and where claims lie. */
export interface FileRoots {
  readonly file: string;
  readonly claimsDir: string;
}

class Collector {
  readonly binds: SandboxBind[] = [];
  readonly toCreate: string[] = [];
  readonly problems: Problem[] = [];
  readonly #roots: FileRoots;

  constructor(roots: FileRoots) {
    this.#roots = roots;
  }

  report(field: string, what: string): void {
    this.problems.push({ where: this.#roots.file, field, what });
  }

  /** An image is named by the directory that it is unpacked in; relative to the manifest. */
  imageDirectory(field: string, image: string | undefined): string | undefined {
    if (image === undefined || image === '') {
      this.report(field, 'is missing');
      return undefined;
    }
    const path = isAbsolute(image) ? image : resolve(dirname(this.#roots.file), image);
    if (isDirectory(path)) return path;
    this.report(field, `no directory ${path}: name the directory that the image is unpacked in`);
    return undefined;
  }

  claimDirectory(field: string, namespace: string, claim: string): string | undefined {
    const path = join(this.#roots.claimsDir, namespace, claim);
    if (existsSync(join(path, 'disk.img'))) return path;
    this.report(field, `no disk file ${join(path, 'disk.img')}: put the claim's disk there`);
    return undefined;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function addContainerDisk(to: Collector, field: string, index: number, volume: Volume): void {
  const source = to.imageDirectory(`${field}.containerDisk.image`, volume.containerDisk?.image);
  if (source === undefined) return;
  const path = volume.containerDisk?.path;
  const inside = join(source, path ?? 'disk');
  if (!existsSync(inside)) {
    to.report(`${field}.containerDisk${path === undefined ? '.image' : '.path'}`, `no disk file: ${inside} is missing`);
    return;
  }
  to.binds.push({ source, destination: `${IMAGE_VOLUMES}/disk_${index}`, readonly: true });
}

function addHostDisk(to: Collector, field: string, volume: Volume): void {
  const disk = volume.hostDisk;
  if (disk === undefined) return;
  if (!isAbsolute(disk.path)) {
    to.report(`${field}.hostDisk.path`, 'must be an absolute path');
    return;
  }
  if (disk.type === 'DiskOrCreate') to.toCreate.push(dirname(disk.path));
  else if (!existsSync(disk.path)) to.report(`${field}.hostDisk.path`, `no disk file ${disk.path}`);
  if (isDirectory(disk.path)) to.report(`${field}.hostDisk.path`, `${disk.path} is a directory: name a disk file`);
  to.binds.push({ source: dirname(disk.path), destination: `${VMI_DISKS}/${volume.name}`, readonly: false });
}

function addClaim(to: Collector, field: string, namespace: string, volume: Volume): void {
  const claim = claimNameOf(volume) ?? volume.ephemeral?.persistentVolumeClaim?.claimName;
  if (claim === undefined) return;
  const source = to.claimDirectory(field, namespace, claim);
  if (source !== undefined) to.binds.push({ source, destination: `${VMI_DISKS}/${volume.name}`, readonly: false });
}

function addKernelBoot(to: Collector, vmi: Vmi): void {
  const container = vmi.spec.domain.firmware?.kernelBoot?.container;
  if (container === undefined) return;
  const field = 'spec.domain.firmware.kernelBoot.container';
  const source = to.imageDirectory(`${field}.image`, container.image);
  if (source === undefined) return;
  for (const name of ['kernelPath', 'initrdPath'] as const) {
    const path = container[name];
    if (!path) continue;
    if (!existsSync(join(source, path))) to.report(`${field}.${name}`, `no file ${join(source, path)}`);
  }
  to.binds.push({ source, destination: KERNEL_BOOT, readonly: true });
}

/** Finds the files that a VM's volumes and kernel need on this machine. */
export function findVmFiles(vmi: Vmi, roots: FileRoots): VmFiles {
  const to = new Collector(roots);
  for (const [index, volume] of (vmi.spec.volumes ?? []).entries()) {
    const field = `spec.volumes[${index}]`;
    if (volume.containerDisk !== undefined) addContainerDisk(to, field, index, volume);
    addHostDisk(to, field, volume);
    addClaim(to, field, vmi.metadata.namespace, volume);
  }
  addKernelBoot(to, vmi);
  return { binds: to.binds, toCreate: to.toCreate, problems: to.problems };
}
