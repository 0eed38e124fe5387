import * as path from 'node:path';
import { connectNotify } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import { errorText } from '../errors.ts';

/**
 * Connects to the own notify socket once. The first gRPC connection of a process takes 60 ms longer than any later one;
 * so it is made while nobody waits, and not when the first VM is to start.
 */
export async function warmUpConnections(shareDir: string, log: Logger): Promise<void> {
  try {
    using _client = await connectNotify(path.join(shareDir, 'domain-notify.sock'));
  } catch (error) {
    log.debug({ reason: errorText(error) }, 'the notify socket did not answer');
  }
}
