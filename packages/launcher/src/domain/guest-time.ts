import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { LIBVIRT_ERROR, LibvirtCallError } from './libvirt-port.ts';

const TRY_EVERY_MS = 1_000;
const GIVE_UP_AFTER_MS = 60_000;

/** Sets the guest's clock after it stood still. */
export interface GuestTimeSync {
  /** Starts trying in the background; a newer request ends an older one. */
  start(domain: DomainRef): void;
  stop(): void;
}

function isFinal(caught: unknown): boolean {
  if (!(caught instanceof LibvirtCallError)) return true;
  return caught.code === LIBVIRT_ERROR.operationUnsupported || caught.code === LIBVIRT_ERROR.argumentUnsupported;
}

/**
 * Creates the sync, at rest.
 *
 * It tries once a second for at most a minute, as the agent may not be back at once. FM-9.7: every unpause gets one,
 * where KubeVirt v1.9 makes one per launcher life.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go setGuestTime
 */
export function createGuestTimeSync(
  libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'setTime'>,
  clock: Clock,
  log: Logger,
): GuestTimeSync {
  let running = new AbortController();

  /** What was there before the guest went on may be gone now. */
  async function isThere({ name }: DomainRef): Promise<boolean> {
    try {
      await libvirt.lookupDomainByName(name);
      return true;
    } catch (caught) {
      log.error({ reason: caught }, 'failed to sync guest time');
      return false;
    }
  }

  async function run(domain: DomainRef, signal: AbortSignal): Promise<void> {
    if (!(await isThere(domain))) return;
    const giveUpAtMs = clock.now() + GIVE_UP_AFTER_MS;
    while (clock.now() < giveUpAtMs) {
      await clock.sleep(TRY_EVERY_MS, signal);
      if (signal.aborted) return;
      const nowMs = clock.now();
      try {
        await libvirt.setTime(domain, Math.floor(nowMs / 1_000), (nowMs % 1_000) * 1_000_000);
        log.info('guest VM time sync finished successfully');
        return;
      } catch (caught) {
        if (!isFinal(caught)) continue;
        log.warn({ reason: caught }, 'failed to sync guest time');
        return;
      }
    }
    log.error('failed to sync guest time');
  }

  return {
    start(domain) {
      running.abort();
      running = new AbortController();
      void run(domain, running.signal);
    },
    stop() {
      running.abort();
    },
  };
}
