import type { Logger } from '@virtwire/telemetry';

import type { DomainPaths, ImageInfo } from '../converter/circumstances.ts';

/** Runs a program of the launcher's image to its end; a failure is thrown with its words. */
export interface ToolPort {
  run(file: string, args: readonly string[], options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** Looks at disk images and at the file systems that hold them. */
export interface ImagePort {
  /** Format and sizes of an image. */
  info(path: string): Promise<ImageInfo>;
  /** Whether the file system of a path takes O_DIRECT; a file that is missing is made for the test and removed. */
  hasDirectIo(path: string): Promise<boolean>;
  /** Free bytes of the file system that holds a path. */
  freeBytes(path: string): Promise<bigint>;
  /** Bytes that a device holds, or that a file takes of its file system; undefined when it cannot be told. */
  storedBytes(path: string): Promise<bigint | undefined>;
}

/** Directories beside those of the domain. */
export interface DiskPaths extends DomainPaths {
  /** `/var/run/kubevirt-image-volume`: container disks as Kubernetes image volumes. */
  readonly imageVolumeDir: string;
  /** `/var/run/kubevirt-kernel-boot` */
  readonly kernelBootDir: string;
  /** `/var/run/secrets/kubernetes.io/serviceaccount/` */
  readonly serviceAccountDir: string;
}

/** What the preparation of disks needs of the world. */
export interface DiskDeps {
  readonly tools: ToolPort;
  readonly images: ImagePort;
  readonly paths: DiskPaths;
  /** The user that QEMU runs as; made files are given to it. */
  readonly qemuUser: { readonly uid: number; readonly gid: number };
  readonly log: Logger;
}
