import { NetworkNamespace, peerCredentials, RouteSocket, runTool } from '@virtwire/host';
import { connectNotify } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import { errorText } from '../errors.ts';
import { readPodNetwork } from './network/read-state.ts';

async function warmWire(notifySocket: string): Promise<void> {
  using client = await connectNotify(notifySocket);
  await peerCredentials(client.socketPath);
}

function warmNetlink(): void {
  using namespace = NetworkNamespace.open('/proc/thread-self/ns/net');
  using socket = RouteSocket.open(namespace);
  readPodNetwork(namespace, socket);
}

/**
 * Does once, while nobody waits, what the first start of a VM would else pay for: loading and compiling the gRPC client,
 * the system calls and the netlink code, and having `nft` in memory. Only looks; a failure is of no consequence.
 *
 * @param notifySocket the handler's own notify socket, the one peer that is surely there.
 */
export async function warmUp(notifySocket: string, log: Logger): Promise<void> {
  try {
    await warmWire(notifySocket);
    warmNetlink();
    await runTool('nft', ['--version']);
  } catch (error) {
    log.debug({ reason: errorText(error) }, 'warming up failed');
  }
}
