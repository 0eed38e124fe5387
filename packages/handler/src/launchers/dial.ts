import { errnoOf, peerCredentials } from '@virtwire/host';

/** What dialling a socket says: someone listens, nobody does any more, or it cannot be told. */
export type DialResult = 'alive' | 'gone' | 'unclear';

const DIAL_TIMEOUT_MS = 5_000;

/**
 * Connects to a socket and hangs up at once. A refusal or a missing file is evidence that its process is gone; a full
 * backlog is not.
 */
export async function dialSocket(socketFile: string, timeoutMs = DIAL_TIMEOUT_MS): Promise<DialResult> {
  try {
    await peerCredentials(socketFile, timeoutMs);
    return 'alive';
  } catch (error) {
    const errno = errnoOf(error);
    return errno === 'ECONNREFUSED' || errno === 'ENOENT' ? 'gone' : 'unclear';
  }
}
