import { setImmediate as nextTurn } from 'node:timers/promises';

import {
  type Vmi,
  emptyDomain,
  parseDomainXml,
  parseVmiJson,
  renderDomainJson,
  renderDomainXml,
  renderVmiJson,
} from '@virtwire/vm-model';

import { circumstancesFromJson } from '../converter/circumstances-json.ts';
import { convertVmi } from '../converter/convert.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';
import type { DiskDeps } from './ports.ts';

/** After so many the code is compiled as far as it matters. */
const ROUNDS = 4;

/** A VM with what nearly every VM has. */
const EXAMPLE: Vmi = {
  metadata: { name: 'example', namespace: 'default', uid: 'example' },
  spec: {
    architecture: 'amd64',
    domain: {
      cpu: { cores: 1, sockets: 1, threads: 1, maxSockets: 4, model: 'host-model' },
      memory: { guest: '1Gi', maxGuest: '4Gi' },
      machine: { type: 'q35' },
      firmware: { uuid: '00000000-0000-4000-8000-000000000000' },
      features: { acpi: { enabled: true } },
      devices: {
        rng: {},
        disks: [
          { name: 'root', disk: { bus: 'virtio' } },
          { name: 'seed', disk: { bus: 'virtio' } },
        ],
        interfaces: [{ name: 'default', masquerade: {} }],
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [
      { name: 'root', containerDisk: { image: 'example' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
    ],
  },
};

/**
 * Prepares a VM that nobody wants, as far as that leaves no trace, so that the one that somebody waits for finds the
 * code compiled and the tool that starts first in memory. A failure costs nothing but the time that was to be saved.
 */
export async function warmUpPreparation(deps: Pick<DiskDeps, 'tools' | 'log'>): Promise<void> {
  try {
    await deps.tools.run('qemu-img', ['--version']);
    for (let round = 0; round < ROUNDS; round++) {
      convertExample();
      // A call that comes meanwhile waits for one round, not for all.
      await nextTurn();
    }
  } catch (error) {
    deps.log.debug({ reason: error }, 'could not warm up the preparation of VMs');
  }
}

function convertExample(): void {
  const vmi = parseVmiJson(renderVmiJson(EXAMPLE));
  const options = { MemBalloonStatsPeriod: 10, interfaceDomainAttachment: { default: 'tap' } };
  const { Spec } = convertVmi(vmi, resolveConverterContext(vmi, circumstancesFromJson(vmi, {}, options)));
  renderDomainJson({ ...emptyDomain(), Spec: parseDomainXml(renderDomainXml(Spec, { indent: '\t' })) });
}
