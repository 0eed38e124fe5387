import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { domainName, renderTime } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
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
}

const FORMAT_RAW = 0;
const MEMORY_ONLY = 16;
/** Part of the name of every dump, by which older ones are found. */
const DUMP_NAME = 'memory.dump';

/** Creates a dumper, at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/memory-dump.go` */
export function createMemoryDumper({ libvirt, metadata, clock }: MemoryDumperDeps): MemoryDumper {
  let isBusy = false;

  function end(failure: string, log: Logger): void {
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
      if (!isNoDomain(caught)) end(failureOf(caught), log);
      throw caught;
    }
    await removeOldDumps(dirname(path), log);
    log.info('Starting memory dump');
    end(await libvirt.coreDump(domain, path, FORMAT_RAW, MEMORY_ONLY).then(() => '', failureOf), log);
  }

  return {
    start(vmi, path, log) {
      if (isBusy) {
        log.info('memory-dump is in progress');
        return;
      }
      isBusy = true;
      void dump(vmi, path, log)
        .catch((caught: unknown) => log.error({ reason: caught }, 'Memory dump failed'))
        .finally(() => {
          isBusy = false;
        });
    },
  };
}

async function removeOldDumps(dir: string, log: Logger): Promise<void> {
  try {
    const names = await readdir(dir);
    await Promise.all(names.filter((name) => name.includes(DUMP_NAME)).map((name) => rm(join(dir, name))));
  } catch (caught) {
    log.warn({ reason: caught }, 'Failed to remove older memory dumps');
  }
}
