import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, chownSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { applyVmiDefaults, clusterDefaults, parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { vmiRequest } from '@virtwire/shared-proto';
import type { LauncherPod } from './sandbox.ts';

const GUEST = join(import.meta.dirname, '../../../../.cache/guest/kernel/boot');

/** True when the test guest was built; `scripts/guest/build.sh` does. */
export const hasGuest = existsSync(join(GUEST, 'vmlinuz'));

/** Puts the guest's kernel where a handler would have mounted it. */
export function provideKernel(pod: Pick<LauncherPod, 'shareDir'>): void {
  for (const file of ['vmlinuz', 'initrd']) {
    const target = join(pod.shareDir, 'container-disks/kernel-boot', file);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(GUEST, file), target);
    chownSync(target, 107, 107);
  }
}

/** How a test VMI differs from the smallest one. */
export interface VmiOptions {
  readonly name: string;
  readonly uid: string;
  readonly withGuest?: boolean;
  readonly kernelArgs?: string;
  readonly startStrategy?: 'Paused';
  readonly phase?: string;
  readonly gracePeriodSeconds?: number;
}

/** A VMI as a handler sends it: defaults applied, phase Scheduled. */
export function createVmi(options: VmiOptions): Vmi {
  const { name, uid, withGuest = false, startStrategy } = options;
  const kernelArgs = options.kernelArgs ?? 'console=ttyS0 quiet';
  const kernelBoot = {
    kernelArgs,
    container: { image: 'guest', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' },
  };
  const vmi = parseVmiJson(
    JSON.stringify({
      metadata: { name, namespace: 'default', uid },
      spec: {
        architecture: 'amd64',
        terminationGracePeriodSeconds: options.gracePeriodSeconds ?? 30,
        ...(startStrategy === undefined ? {} : { startStrategy }),
        domain: {
          memory: { guest: withGuest ? '192Mi' : '64Mi' },
          devices: { autoattachPodInterface: false },
          firmware: withGuest ? { kernelBoot } : {},
        },
        networks: [],
      },
      status: { phase: options.phase ?? 'Scheduled' },
    }),
  );
  return applyVmiDefaults(vmi, clusterDefaults('amd64'), randomUUID());
}

/** The request about a VMI. */
export function requestOf(vmi: Vmi): ReturnType<typeof vmiRequest> {
  return vmiRequest(renderVmiJson(vmi));
}
