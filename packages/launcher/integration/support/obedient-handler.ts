import { setTimeout as sleep } from 'node:timers/promises';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import type { requestOf } from './guest.ts';
import type { HeardEvent, LauncherPod } from './sandbox.ts';

const PATIENT = { timeoutMs: 60_000 };

const isMarked = ({ domain }: HeardEvent): boolean =>
  domain.Spec.Metadata.KubeVirt.GracePeriod?.MarkedForGracefulShutdown === true;

/** The VM has run, and does not any more. */
const isOff = ({ domain: { Status } }: HeardEvent): boolean =>
  Status.Status === 'Shutoff' && Status.Reason !== 'Unknown';

/** What a handler does about a launcher whose pod is to end. */
export interface ObedientHandler extends Disposable {
  /** The event in which it heard that the VM is off. */
  readonly heardOff: Promise<HeardEvent>;
}

/**
 * Plays the handler of a pod that is to end: asks the guest to power off when the launcher says so, and deletes the domain
 * as soon as it hears that the VM is off.
 */
export function playObedientHandler(
  pod: LauncherPod,
  client: CmdClient,
  request: ReturnType<typeof requestOf>,
  { shutsDown = true }: { readonly shutsDown?: boolean } = {},
): ObedientHandler {
  const stopping = new AbortController();
  const off = Promise.withResolvers<HeardEvent>();
  off.promise.catch(() => undefined);
  async function play(): Promise<void> {
    let isAsked = false;
    while (!stopping.signal.aborted) {
      const { domains } = pod.ear;
      if (shutsDown && !isAsked && domains.some(isMarked)) {
        isAsked = true;
        unwrap(await client.shutdownVirtualMachine(request, PATIENT));
      }
      const heard = domains.find(isOff);
      if (heard !== undefined) {
        off.resolve(heard);
        // It may be busy, as a handler finds it, too.
        if ((await client.deleteVirtualMachine(request, PATIENT)).ok) return;
      }
      await sleep(20);
    }
  }
  play().catch((caught: unknown) => off.reject(caught));
  return { heardOff: off.promise, [Symbol.dispose]: () => stopping.abort() };
}
