import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Vmi } from '@virtwire/vm-model';
import { isConditionTrue } from '@virtwire/vm-model';
import { waitForVmi } from '../../src/index.ts';
import type { StandaloneNode } from '../../src/index.ts';
import { GUEST } from './machine.ts';

const RUNNING_MS = 60_000;
const AGENT_MS = 150_000;
const END_MS = 120_000;

/** What a test wants of its VM. */
export interface GuestWish {
  readonly name: string;
  readonly kernelArgs?: string;
  readonly graceSeconds?: number;
  readonly network?: 'masquerade' | 'bridge' | 'none';
}

/** Text of a manifest that boots the test guest's kernel. */
function guestManifest({ name, kernelArgs = '', graceSeconds = 30, network = 'none' }: GuestWish): string {
  const hasNetwork = network !== 'none';
  return stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: graceSeconds,
      domain: {
        memory: { guest: '160Mi' },
        firmware: {
          kernelBoot: {
            kernelArgs: `console=ttyS0 quiet ${kernelArgs}`.trim(),
            container: { image: join(GUEST, 'kernel'), kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' },
          },
        },
        devices: hasNetwork ? { interfaces: [{ name: 'default', [network]: {} }] } : { autoattachPodInterface: false },
      },
      ...(hasNetwork ? { networks: [{ name: 'default', pod: {} }] } : {}),
    },
  });
}

/** Writes the manifest into a directory. */
export function writeGuest(directory: string, wish: GuestWish): string {
  const file = join(directory, `${wish.name}.yaml`);
  writeFileSync(file, guestManifest(wish));
  return file;
}

type NodeParts = Pick<StandaloneNode, 'store'>;

/** Waits until a VM is as wanted; a VM that fails meanwhile is told with its reason. */
export function untilVm(
  node: NodeParts,
  key: string,
  what: string,
  is: (vmi: Vmi) => boolean,
  timeoutMs = RUNNING_MS,
): Promise<Vmi> {
  const wanted = (vmi: Vmi | undefined): Vmi | undefined => {
    if (vmi === undefined) return undefined;
    if (is(vmi)) return vmi;
    if (vmi.status?.phase === 'Failed') throw new Error(`${what}: the VM failed: ${vmi.status.reason ?? 'no reason'}`);
    return undefined;
  };
  return waitForVmi(node.store, key, wanted, { what, timeoutMs });
}

/** Waits until a VM runs. */
export function untilRunning(node: NodeParts, key: string): Promise<Vmi> {
  return untilVm(node, key, `${key} Running`, (vmi) => vmi.status?.phase === 'Running');
}

/** Waits until the agent of a guest answers. */
export function untilAgent(node: NodeParts, key: string): Promise<Vmi> {
  const isConnected = (vmi: Vmi): boolean => isConditionTrue(vmi.status?.conditions, 'AgentConnected');
  return untilVm(node, key, `${key} AgentConnected`, isConnected, AGENT_MS);
}

/** Waits until a VM is final. */
export function untilFinal(node: NodeParts, key: string, timeoutMs = END_MS): Promise<Vmi> {
  const isFinal = (vmi: Vmi): boolean => vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed';
  return untilVm(node, key, `${key} final`, isFinal, timeoutMs);
}
