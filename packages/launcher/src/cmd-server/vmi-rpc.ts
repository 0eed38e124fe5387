import type { CallContext, cmdV1 } from '@virtwire/shared-proto';
import { parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';
import { wireError } from './wire-error.ts';

/** Answer to a request whose VMI cannot be read. */
const NO_VMI_TEXT = 'No valid vmi object present in command server request';

/** What an RPC about a VMI says to the log. */
export interface RpcTexts {
  /** Absent where success is nothing to speak of. */
  readonly success?: string;
  readonly failure: string;
}

type VmiRequest = Pick<cmdV1.VMIRequest, 'vmi'>;

function vmiOf(request: VmiRequest): Vmi {
  try {
    return parseVmiJson(Buffer.from(request.vmi?.vmiJson ?? []).toString('utf8'));
  } catch (caught) {
    throw new LauncherError('BadRequest', NO_VMI_TEXT, { cause: caught });
  }
}

/**
 * A method whose request names a VMI: reads it, does the work, and logs the outcome with the VMI's names.
 *
 * @param work gets a log that carries the VMI's names.
 */
export function vmiRpc<R extends VmiRequest, T = void>(
  log: Logger,
  texts: RpcTexts,
  work: (vmi: Vmi, log: Logger, request: R, context: CallContext | undefined) => Promise<T>,
): (request: R, context?: CallContext) => Promise<T> {
  return async (request, context) => {
    const vmi = vmiOf(request);
    const vmiLog = log.child(objectFields(vmi));
    try {
      const answer = await work(vmi, vmiLog, request, context);
      if (texts.success !== undefined) vmiLog.info(texts.success);
      return answer;
    } catch (caught) {
      vmiLog.error({ reason: caught }, texts.failure);
      throw wireError(caught);
    }
  };
}
