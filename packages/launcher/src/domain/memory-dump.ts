import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { domainName, renderTime } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { TOO_LATE, within } from '../config/within.ts';
import { textOf } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isNoDomain } from './libvirt-port.ts';

/** What a dump needs. */
export interface MemoryDumperDeps {
  /** The connection for long calls. */
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'coreDump'>;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
}

/** Writes the guest's memory to a file. */
export interface MemoryDumper {
  /** Starts a dump in the background; its end is told by metadata. Does nothing while one runs or when it was made. */
  start(vmi: Vmi, path: string, log: Logger): void;
  /** The VM has ended: resolves when it is recorded what became of its dump, within 5 s whatever libvirt says. */
  settle(): Promise<void>;
}

const FORMAT_RAW = 0;
const MEMORY_ONLY = 16;
/** libvirt fails a dump right after QEMU's end, unless its storage hangs; nor is such storage waited for. */
const SETTLE_LIMIT_MS = 5_000;
/** Part of the name of every dump, by which older ones are found. */
const DUMP_NAME = 'memory.dump';

/** Creates a dumper, at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/memory-dump.go` */
export function createMemoryDumper({ libvirt, metadata, clock }: MemoryDumperDeps): MemoryDumper {
  let running: { readonly path: string; readonly log: Logger; readonly done: Promise<void> } | undefined;

  function end(path: string, failure: string, log: Logger): void {
    const { FileName, EndTimestamp } = metadata.memoryDump.load() ?? {};
    if (FileName !== basename(path) || EndTimestamp !== undefined) return;
    if (failure === '') log.info('Completed memory dump successfully');
    else log.error(failure);
    metadata.memoryDump.update((started) => ({
      ...started,
      EndTimestamp: renderTime(clock.now()),
      Completed: true,
      Failed: failure !== '',
      FailureReason: failure,
    }));
  }

  const failureOf = (caught: unknown): string => `Domain memory dump failed: ${textOf(caught)}`;

  async function dump({ metadata: { namespace, name } }: Vmi, path: string, log: Logger): Promise<void> {
    const FileName = basename(path);
    if (metadata.memoryDump.load()?.FileName === FileName) return;
    metadata.memoryDump.store({ FileName, StartTimestamp: renderTime(clock.now()) });
    let domain: DomainRef;
    try {
      domain = await libvirt.lookupDomainByName(domainName(namespace, name));
    } catch (caught) {
      // With libvirt away for a moment the VM goes on, and would wait for the end of its dump for ever.
      if (!isNoDomain(caught)) end(path, failureOf(caught), log);
      throw caught;
    }
    await removeOldDumps(dirname(path), log);
    log.info('Starting memory dump');
    const failure = await libvirt.coreDump(domain, path, FORMAT_RAW, MEMORY_ONLY).then(() => '', failureOf);
    if (failure !== '') await within(clock, SETTLE_LIMIT_MS, removeHalf(path, log));
    end(path, failure, log);
  }

  return {
    start(vmi, path, log) {
      if (running !== undefined) {
        log.info('memory-dump is in progress');
        return;
      }
      const done = dump(vmi, path, log)
        .catch((caught: unknown) => log.error({ reason: caught }, 'Memory dump failed'))
        .finally(() => {
          running = undefined;
        });
      running = { path, log, done };
    },
    async settle() {
      if (running === undefined) return;
      const { path, log, done } = running;
      if ((await within(clock, SETTLE_LIMIT_MS, done)) !== TOO_LATE) return;
      await within(clock, SETTLE_LIMIT_MS, removeHalf(path, log));
      end(path, failureOf('the VM has ended'), log);
    },
  };
}

/** libvirt leaves what it has written of a dump that failed; nobody shall take it for a whole one. */
async function removeHalf(path: string, log: Logger): Promise<void> {
  await rm(path, { force: true }).catch((caught: unknown) => {
    log.warn({ reason: caught }, 'Failed to remove the memory dump that failed');
  });
}

async function removeOldDumps(dir: string, log: Logger): Promise<void> {
  try {
    const names = await readdir(dir);
    await Promise.all(names.filter((name) => name.includes(DUMP_NAME)).map((name) => rm(join(dir, name))));
  } catch (caught) {
    log.warn({ reason: caught }, 'Failed to remove older memory dumps');
  }
}
