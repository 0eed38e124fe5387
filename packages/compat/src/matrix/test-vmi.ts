import type { Vmi } from '@virtwire/vm-model';
import { applyVmiDefaults, clusterDefaults, parseVmiJson } from '@virtwire/vm-model';
import { NODE_NAME } from './node-dirs.ts';

/** The pod of the VM's launcher. Short, since it is part of the paths of sockets, which have a limit of 107 bytes. */
export const POD_UID = 'p1';

/** Who the VM of every cell is. */
export const VM = { namespace: 'ns1', name: 'vm1', uid: '7d444840-9dc0-11d1-b245-5ffdce74fad2' } as const;

/** Key of the VM in the store. */
export const VM_KEY = `${VM.namespace}/${VM.name}`;

const FIRMWARE_UUID = '6ba7b810-9dad-41d1-80b4-00c04fd430c8';
const now = (): string => `${new Date().toISOString().slice(0, 19)}Z`;

/** The VMI of a cell as virt-controller hands it over to the node: Scheduled, one pod, one disk, no network. */
export function scheduledVmi(edit: (vmi: Vmi) => void = () => undefined): Vmi {
  const bare = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...VM, resourceVersion: '1', labels: { 'kubevirt.io/nodeName': NODE_NAME } },
    spec: {
      architecture: 'amd64',
      terminationGracePeriodSeconds: 30,
      domain: {
        resources: { requests: { memory: '64Mi' } },
        memory: { guest: '64Mi' },
        devices: { autoattachPodInterface: false, disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
      },
      networks: [],
      volumes: [{ name: 'root', hostDisk: { path: '/var/lib/vms/root.img', type: 'Disk', capacity: '64Mi' } }],
    },
    status: {
      phase: 'Scheduled',
      nodeName: NODE_NAME,
      runtimeUser: 107,
      activePods: { [POD_UID]: NODE_NAME },
      phaseTransitionTimestamps: [{ phase: 'Scheduled', phaseTransitionTimestamp: now() }],
    },
  };
  const vmi = applyVmiDefaults(parseVmiJson(JSON.stringify(bare)), clusterDefaults('amd64'), FIRMWARE_UUID);
  edit(vmi);
  return vmi;
}

/** The time as the API prints it. */
export const apiNow = now;
