import { mkdir, writeFile } from 'node:fs/promises';

import type { Vmi } from '@virtwire/vm-model';

import type { DiskDeps } from './ports.ts';

const ANNOTATION = 'kubevirt.io/ignitiondata';

/** Writes the VMI's ignition data where QEMU's fw_cfg reads it. */
export async function writeIgnition(deps: Pick<DiskDeps, 'paths'>, vmi: Vmi): Promise<void> {
  const data = vmi.metadata.annotations?.[ANNOTATION];
  if (data === undefined || data === '') return;
  const dir = `${deps.paths.ephemeralDir}/ignition-data/${vmi.metadata.namespace}/${vmi.metadata.name}`;
  await mkdir(dir, { recursive: true, mode: 0o755 });
  await writeFile(`${dir}/data.ign`, data, { mode: 0o644 });
}
