import type { NftCommand } from './masquerade-rules.ts';
import type { NetworkFiles } from './ports.ts';
import type { DesiredNetwork } from './state.ts';

/** Cannot be the name of a network, which is a DNS label. */
const FILE_NAME = '.virtwire.json';

/** What has to be true of a pod's network once a set-up that was begun is done. */
export interface PendingSetup {
  readonly networks: readonly string[];
  readonly desired: DesiredNetwork;
  readonly nft: readonly NftCommand[];
}

/**
 * Beside the state files of a VMI, which KubeVirt keys by the VMI alone: the pod that they belong to, and while a set-up
 * is under way, its goal. So a new pod of the same VMI is set up anew, and a set-up that was cut short can be finished.
 */
export interface Journal {
  readonly pod: string;
  readonly pending?: PendingSetup;
}

/** Reads the journal of a VMI; undefined when there is none (the state may come from another node agent). */
export function readJournal(files: NetworkFiles, vmiUid: string): Journal | undefined {
  const text = files.read(`${vmiUid}/${FILE_NAME}`);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJournal(value) ? value : undefined;
  } catch {
    return undefined; // cut short by a full disk: as if it had never been
  }
}

export function writeJournal(files: NetworkFiles, vmiUid: string, journal: Journal): void {
  files.write(`${vmiUid}/${FILE_NAME}`, JSON.stringify(journal));
}

function isJournal(value: unknown): value is Journal {
  return typeof value === 'object' && value !== null && 'pod' in value && typeof value.pod === 'string';
}
