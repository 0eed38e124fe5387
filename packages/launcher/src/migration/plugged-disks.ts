import { access, constants } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { isHotplugVolume } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';

/** Looks whether disks that were plugged into a VM are in the pod that the VM comes to. */
export interface PluggedDisks {
  /** @throws {LauncherError} `MigrationFailed` while one is missing or cannot be read */
  check(vmi: Vmi): Promise<void>;
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

/** Claims that the VMI has plugged in; the status of a VMI that comes from another cluster may not tell of them yet. */
function pluggedVolumes({ spec, status }: Vmi): readonly string[] {
  const claims = (spec.volumes ?? []).filter(
    (volume) => isHotplugVolume(volume) && (volume.persistentVolumeClaim ?? volume.dataVolume) !== undefined,
  );
  const told = (status?.volumeStatus ?? []).filter(({ hotplugVolume }) => hotplugVolume !== undefined);
  return [...new Set([...claims, ...told].map(({ name }) => name))];
}

/** @param hotplugDir where disks are plugged in. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-target.go` */
export function createPluggedDisks(hotplugDir: string): PluggedDisks {
  async function find(volume: string): Promise<string | undefined> {
    for (const path of [join(hotplugDir, `${volume}.img`), join(hotplugDir, volume)]) {
      if (await can(path, constants.F_OK)) return path;
    }
    return undefined;
  }
  return {
    async check(vmi) {
      const plugged = pluggedVolumes(vmi);
      const found = (await Promise.all(plugged.map(find))).filter((path) => path !== undefined);
      if (found.length !== plugged.length) {
        const text = `found ${String(found.length)} hotplugged disks files, expected ${String(plugged.length)}`;
        throw new LauncherError('MigrationFailed', text);
      }
      const readable = (await Promise.all(found.map((path) => can(path, constants.R_OK)))).filter(Boolean);
      if (readable.length === plugged.length) return;
      const counts = `found ${String(readable.length)} ready, expected ${String(plugged.length)}`;
      throw new LauncherError('MigrationFailed', `not all hotplugged disks are ready to use, ${counts}`);
    },
  };
}
