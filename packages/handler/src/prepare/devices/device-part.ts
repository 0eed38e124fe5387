import type { Vmi } from '../../model.ts';
import type { DevicePart, Isolation } from '../parts.ts';
import { openLauncherRoot } from './launcher-root.ts';
import { setUpOwnership } from './ownership.ts';

/** Settings that may change with the KubeVirt object. */
export interface DevicePartOptions {
  readonly hypervisorDevice: () => string;
  readonly useEmulation: () => boolean;
  /** Creates missing host disk images. */
  readonly createHostDisks?: (vmi: Vmi, launcher: Isolation) => Promise<void>;
}

/** Ownership of what QEMU opens in a launcher's tree. */
export function createDevicePart(options: DevicePartOptions): DevicePart {
  return {
    async prepare(vmi, launcher) {
      const { createHostDisks } = options;
      await setUpOwnership(openLauncherRoot(launcher.rootPath), vmi, {
        hypervisorDevice: options.hypervisorDevice(),
        useEmulation: options.useEmulation(),
        ...(createHostDisks === undefined ? {} : { createHostDisks: () => createHostDisks(vmi, launcher) }),
      });
    },
  };
}
