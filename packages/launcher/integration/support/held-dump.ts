import { execFileSync } from 'node:child_process';
import { chownSync, closeSync, constants, existsSync, mkdirSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CmdClient } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import type { requestOf } from './guest.ts';
import type { LauncherPod } from './sandbox.ts';

const QEMU_UID = 107;
const CHUNK_BYTES = 64 * 1024;
const DUMPS = '/var/run/kubevirt/dumps';

/** A dump that goes no faster than its storage, which the test has in its hands. */
export interface HeldDump extends Disposable {
  readonly fileName: string;
  /** Whether anything is left under the name of the dump. */
  isLeft(): boolean;
  /** Lets the storage take what is written: 64 KiB at a time. @param pauseMs between two times */
  flow(pauseMs: number): void;
}

/** Makes a directory for dumps in the pod. */
function provideDumpDirectory(pod: LauncherPod): string {
  const dir = join(pod.shareDir, 'dumps');
  if (!existsSync(dir)) mkdirSync(dir);
  chownSync(dir, QEMU_UID, QEMU_UID);
  return dir;
}

/** Asks for a dump of the memory. */
export async function askForDump(
  client: CmdClient,
  request: ReturnType<typeof requestOf>,
  file: string,
): Promise<void> {
  unwrap(await client.virtualMachineMemoryDump({ vmi: request.vmi, dumpPath: `${DUMPS}/${file}` }));
}

/** Starts a dump into storage that takes nothing yet, and waits until libvirt is in the middle of it. */
export async function holdDump(
  pod: LauncherPod,
  client: CmdClient,
  request: ReturnType<typeof requestOf>,
): Promise<HeldDump> {
  const fileName = 'held';
  const path = join(provideDumpDirectory(pod), fileName);
  execFileSync('/usr/bin/mkfifo', ['-m', '666', path]);
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stopping = new AbortController();
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const drain = async (pauseMs: number): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        readSync(fd, chunk);
      } catch {
        // Nothing to take right now.
      }
      await sleep(pauseMs);
    }
    closeSync(fd);
  };
  let draining: Promise<void> | undefined;
  await askForDump(client, request, fileName);
  await pod.ear.hear('the dump', (e) => e.domain.Status.Reason === 'Dump');
  return {
    fileName,
    isLeft: () => existsSync(path),
    flow: (pauseMs) => void (draining ??= drain(pauseMs)),
    [Symbol.dispose]() {
      stopping.abort();
      if (draining === undefined) closeSync(fd);
    },
  };
}
