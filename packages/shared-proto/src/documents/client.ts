import type { CallOptions, CallResult } from '../calls.ts';
import type { CmdClient } from '../cmd/api.ts';
import { CMD_RPC_NAMES, type CmdRpc, methodName } from '../cmd/rpcs.ts';
import { ProtoError } from '../errors.ts';
import { printDocuments, readDocuments } from './convert.ts';
import { CMD_DOCUMENTS } from './table.ts';
import type { DocumentCalls, DocumentClient } from './types.ts';

/**
 * Lets a client speak in documents: VMIs, domains, options, guest info and the like, printed and read as Go does.
 *
 * An answer whose document cannot be read, or a document that cannot be printed, ends the call with `BadDocument`. It costs next to nothing, so that it need
 * not be kept.
 */
export function withDocuments(client: CmdClient): DocumentClient {
  const methods = Object.fromEntries(
    CMD_RPC_NAMES.map((rpc) => [
      methodName(rpc),
      (request?: object, options?: CallOptions) => call(client, rpc, request, options),
    ]),
  ) as unknown as DocumentCalls; // one method per name, by construction
  return { ...methods, client };
}

async function call(
  client: CmdClient,
  rpc: CmdRpc,
  request: object = {},
  options: CallOptions = {},
): Promise<CallResult<object>> {
  const tree = CMD_DOCUMENTS[rpc];
  try {
    const message = printDocuments(request, tree.request);
    const method = client[methodName(rpc)] as (message: object, options: CallOptions) => Promise<CallResult<object>>;
    const result = await method(message, options);
    if (result.ok) return { ok: true, value: readDocuments(result.value, tree.response) };
    if (result.answer === undefined) return { ok: false, error: result.error };
    return { ok: false, error: result.error, answer: readDocuments(result.answer, tree.response) };
  } catch (caught) {
    const reason = caught instanceof Error ? caught.message : String(caught);
    return { ok: false, error: new ProtoError('BadDocument', `${rpc}: ${reason}`, { cause: caught, detail: reason }) };
  }
}
