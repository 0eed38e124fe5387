import { randomUUID } from 'node:crypto';
import { applyVmiDefaults, clusterDefaults, parseVmiJson, renderVmiJson, type Vmi } from '@virtwire/vm-model';

/** Names of the VM that a probe makes when it is given none. */
const NAMES = { namespace: 'default', name: 'virtwire-probe', uid: '5d6f0d0e-7f5b-4f0e-9d3c-0a1b2c3d4e5f' };

/** A VMI that every launcher can start: no disk, no network, a firmware that finds nothing to boot. */
export function throwAwayVmi(): Vmi {
  const bare = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: NAMES,
    spec: {
      architecture: 'amd64',
      terminationGracePeriodSeconds: 5,
      domain: {
        cpu: { sockets: 1, cores: 1, threads: 1, maxSockets: 2 },
        memory: { guest: '64Mi' },
        resources: { requests: { memory: '64Mi' } },
        devices: { autoattachPodInterface: false },
      },
      networks: [],
    },
    status: { phase: 'Scheduled' },
  };
  return applyVmiDefaults(parseVmiJson(JSON.stringify(bare)), clusterDefaults('amd64'), randomUUID());
}

/** A copy of a VMI in another phase. */
export function inPhase(vmi: Vmi, phase: string): Vmi {
  const copy = parseVmiJson(renderVmiJson(vmi));
  copy.status = { ...copy.status, phase } as NonNullable<Vmi['status']>;
  return copy;
}
