import type { VmiStore } from '../controller/store.ts';
import { keyOf } from '../controller/store.ts';
import type { Journal } from '../journal/journal.ts';
import { NODE_OWNER } from '../journal/resource.ts';
import { releaseEntry, releaseOwner } from '../journal/undo.ts';
import type { RunTool } from '../machine/run-tool.ts';
import type { SandboxRecords } from '../state/sandbox-records.ts';
import { KEEP_ANNOTATION } from './sandbox-port.ts';

/** What is looked through for remains. */
export interface RemainsDeps {
  readonly store: VmiStore;
  readonly records: SandboxRecords;
  readonly journal: Journal;
  readonly run: RunTool;
}

/**
 * Removes what a killed process has left: VMs that were to end with it, sandboxes whose VM is gone or that were never
 * finished, and the handler that lost its supervisor. VMs that are kept stay as they are.
 */
export async function removeRemains({ store, records, journal, run }: RemainsDeps): Promise<void> {
  for (const entry of journal.entries(NODE_OWNER)) {
    if (entry.resource.kind === 'process') await releaseEntry(journal, run, entry);
  }
  const kept = new Set<string>();
  for (const record of records.list()) {
    const vmi = store.get(`${record.namespace}/${record.name}`);
    if (vmi?.metadata.uid === record.vmiUid && record.keep) kept.add(record.podUid);
    else {
      await releaseOwner(journal, run, record.podUid);
      records.remove(record.vmiUid);
    }
  }
  for (const owner of new Set(journal.entries().map((entry) => entry.owner))) {
    if (owner !== NODE_OWNER && !kept.has(owner)) await releaseOwner(journal, run, owner);
  }
  for (const vmi of store.list()) {
    if (vmi.metadata.annotations?.[KEEP_ANNOTATION] !== 'true') await store.remove(keyOf(vmi));
  }
}
