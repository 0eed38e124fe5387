import { errnoOf } from '../errors.ts';
import { libc, throwErrno } from '../libc.ts';

const FLAGS = {
  ro: 1n,
  nosuid: 2n,
  nodev: 4n,
  noexec: 8n,
  remount: 32n,
  bind: 4096n,
  rec: 16384n,
  private: 1n << 18n,
  slave: 1n << 19n,
  shared: 1n << 20n,
} as const;

const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;

/** A word of `mount(2)`'s flags. */
export type MountFlag = keyof typeof FLAGS;

/** One `mount(2)` call in the own mount namespace. */
export interface MountRequest {
  /** Device, directory of a bind mount, or a word such as `tmpfs`. */
  readonly source: string;
  readonly target: string;
  /** Empty for bind mounts and changes of propagation. */
  readonly fsType?: string;
  readonly flags?: readonly MountFlag[];
  /** Text for the filesystem, as after `-o`. */
  readonly data?: string;
}

/** Mounts in the own mount namespace. A target below a pod is given as {@link SafePath.procPath}. */
export function mount(request: MountRequest): void {
  const flags = (request.flags ?? []).reduce((sum, f) => sum | FLAGS[f], 0n);
  const { source, target, fsType, data } = request;
  if (libc().mount(source, target, fsType ?? null, flags, data ?? null) !== 0) {
    throwErrno(`mount ${source} at ${target}`);
  }
}

/**
 * Binds a file or directory. The kernel ignores `ro` in the first call of a bind, so it is asked for in a second one.
 */
export function bindMount(source: string, target: string, options: { readonly readOnly?: boolean } = {}): void {
  mount({ source, target, flags: ['bind'] });
  if (options.readOnly !== true) return;
  try {
    mount({ source, target, flags: ['bind', 'remount', 'ro'] });
  } catch (caught) {
    unmount(target);
    throw caught;
  }
}

/**
 * Unmounts lazily, what is mounted at the path itself and no target of a link there.
 *
 * @returns false if nothing is mounted there.
 */
export function unmount(target: string): boolean {
  if (libc().umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW) === 0) return true;
  try {
    throwErrno(`umount ${target}`);
  } catch (caught) {
    const errno = errnoOf(caught);
    if (errno === 'EINVAL' || errno === 'ENOENT') return false;
    throw caught;
  }
}
