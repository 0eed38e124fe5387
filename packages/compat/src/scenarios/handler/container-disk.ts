import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import { POD_UID } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, checkPeace } from './running.ts';

const IMAGE_BYTES = 65_536;
const VOLUME = 'image';

function addContainerDisk(vmi: Vmi): void {
  const { devices } = vmi.spec.domain;
  devices.disks = [...(devices.disks ?? []), { name: VOLUME, disk: { bus: 'virtio' } }];
  vmi.spec.volumes = [...(vmi.spec.volumes ?? []), { name: VOLUME, containerDisk: { image: 'example/disk:1' } }];
}

/** A VM with a container disk: launchers before v1.6 have to be told format and sizes of its image. */
export async function containerDisk(scene: HandlerScene): Promise<CellResult> {
  const images = join(scene.dirs.pod(POD_UID).shareDir, 'container-disks');
  mkdirSync(images);
  // Named after the place of the volume in the VMI.
  writeFileSync(join(images, 'disk_1.img'), Buffer.alloc(IMAGE_BYTES));
  const launcher = await scene.runVm({}, addContainerDisk);
  const [sync] = callsOf(launcher, 'SyncVirtualMachine');
  const options = sync?.request['options'] as Readonly<Record<string, unknown>> | undefined;
  const isTold = JSON.stringify(options?.['DisksInfo'] ?? {}, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  ).includes('raw');
  const { needsDisksInfo } = factsOf(scene.line).launcher;
  check(isTold || !needsDisksInfo.value, 'the launcher was not told the format of the image');
  check(!isTold || needsDisksInfo.value, 'a launcher that looks at images itself was told about them');
  checkPeace(launcher);
  return PASS;
}
