import { existsSync } from 'node:fs';
import type { Vmi } from '@virtwire/vm-model';
import type { VmiKey, VmiStore } from '../controller/store.ts';
import { VirtwireError } from '../errors.ts';
import type { NodeLayout } from '../state/layout.ts';
import { openEventFiles } from '../state/event-files.ts';
import type { EventFiles } from '../state/event-files.ts';
import { openSandboxRecords } from '../state/sandbox-records.ts';
import type { SandboxRecord, SandboxRecords } from '../state/sandbox-records.ts';
import { VmiFiles } from '../state/vmi-files.ts';

/** The key that `NAME` or `NS/NAME` means. */
export function parseTarget(text: string): VmiKey {
  const parts = text.split('/');
  if (parts.length > 2 || parts.some((part) => part === '')) {
    throw new VirtwireError('Usage', `"${text}" names no VM: write NAME or NAMESPACE/NAME`);
  }
  return parts.length === 2 ? text : `default/${text}`;
}

/** The VMs of a state directory, as other processes left them on disk. */
export interface NodeFiles {
  readonly store: VmiStore;
  readonly records: SandboxRecords;
  readonly events: EventFiles;
}

/** Opens a state directory to look at; undefined when there is none. */
export function openNodeFiles(layout: NodeLayout): NodeFiles | undefined {
  if (!existsSync(layout.vmisDir)) return undefined;
  return {
    store: new VmiFiles(layout.vmisDir),
    records: openSandboxRecords(layout.recordsDir),
    events: openEventFiles(layout.eventsDir),
  };
}

/** @throws {VirtwireError} `NotFound` that names the VMs there are. */
export function findVmi(layout: NodeLayout, key: VmiKey): { readonly vmi: Vmi; readonly files: NodeFiles } {
  const files = openNodeFiles(layout);
  const vmi = files?.store.get(key);
  if (files !== undefined && vmi !== undefined) return { vmi, files };
  const names = files?.store.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`) ?? [];
  const known = names.length === 0 ? 'no VM runs there' : `there is ${names.join(', ')}`;
  throw new VirtwireError('NotFound', `no VM ${key} in ${layout.stateDir}: ${known}`);
}

/** @throws {VirtwireError} `NoLauncher` when the VM has no sandbox now. */
export function findSandbox(layout: NodeLayout, key: VmiKey): SandboxRecord {
  const { vmi, files } = findVmi(layout, key);
  const record = files.records.read(vmi.metadata.uid);
  if (record !== undefined) return record;
  const phase = vmi.status?.phase ?? 'Pending';
  throw new VirtwireError('NoLauncher', `VM ${key} has no launcher: it is ${phase}`);
}
