import type { Duplex } from 'node:stream';
import { LibvirtError } from './errors.ts';
import { MessageLimit } from './gen/constants.gen.ts';
import type { Procedure } from './procedures.ts';

/** Copies of file descriptors that wait to be sent; they are closed when this is disposed of. */
export interface OutgoingDescriptors extends Disposable {
  /**
   * Sends one zero byte with each, in messages of their own. All that was written to the stream is with the kernel, and
   * nothing is written until this is over.
   *
   * @param stream the connection's socket.
   * @param signal the connection has ended.
   */
  send(stream: Duplex, signal: AbortSignal): Promise<void>;
}

/** Copies descriptors at once, so that their owner may close them; throws when one is not open. */
export type CopyDescriptors = (descriptors: readonly number[]) => OutgoingDescriptors;

/**
 * Copies what a call is to carry, undefined when that is nothing.
 *
 * @throws {LibvirtError} `Unsupported` when descriptors cannot be sent or received here, `InvalidArgument` for a call
 *   that takes none, for more than 32, and for one that is not open.
 */
export function copiesFor(
  procedure: Procedure,
  descriptors: readonly number[],
  copy: CopyDescriptors | undefined,
): OutgoingDescriptors | undefined {
  const { name } = procedure;
  const refuse = (kind: 'Unsupported' | 'InvalidArgument', what: string, cause?: unknown): never => {
    throw LibvirtError.client(kind, `${name}${what}`, { procedure: name, cause });
  };
  if (procedure.givesDescriptors) refuse('Unsupported', ' returns file descriptors, which this client cannot receive');
  if (descriptors.length === 0) return undefined;
  if (!procedure.takesDescriptors) refuse('InvalidArgument', ' takes no file descriptors');
  if (descriptors.length > MessageLimit.NUM_FDS_MAX) {
    refuse('InvalidArgument', `: ${String(descriptors.length)} descriptors, limit ${String(MessageLimit.NUM_FDS_MAX)}`);
  }
  if (copy === undefined)
    return refuse('Unsupported', ' passes file descriptors, which needs the option copyDescriptors');
  try {
    return copy(descriptors);
  } catch (error) {
    return refuse('InvalidArgument', `: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}
