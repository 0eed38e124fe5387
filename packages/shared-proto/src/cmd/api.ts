import type { CallContext, CallOptions, CallResult } from '../calls.ts';
import type { DeepPartial } from '../gen/kubevirt/cmd/v1/cmd.ts';
import type { CmdRequest, CmdRequestInit, CmdResponse, CmdRpc } from './rpcs.ts';

/** One method per RPC, named as on the wire with a small first letter. A request that is left out is an empty one. */
export type CmdCalls = {
  readonly [R in CmdRpc as Uncapitalize<R>]: (
    request?: CmdRequestInit<R>,
    options?: CallOptions,
  ) => Promise<CallResult<CmdResponse<R>>>;
};

/** A connection to one launcher. Calls never throw: they answer with a {@link CallResult}. */
export interface CmdClient extends CmdCalls, Disposable {
  readonly socketPath: string;
  /** The protocol generation that both sides speak. */
  readonly version: number;
  /** Calls an RPC by its name on the wire. */
  call<R extends CmdRpc>(
    rpc: R,
    request?: CmdRequestInit<R>,
    options?: CallOptions,
  ): Promise<CallResult<CmdResponse<R>>>;
  /**
   * Tells when the connection to the launcher ends without {@link CmdClient.close}: at once when the launcher dies.
   * A later call dials again, after which the listener is told about the end of that connection as well.
   */
  onConnectionLost(listener: () => void): Disposable;
  /** Ends the connection; calls under way fail. Safe to repeat. */
  close(): void;
}

/** What a launcher answers: nothing for plain success, or the fields of the response (success unless it says not). */
export type CmdAnswer<R extends CmdRpc> = DeepPartial<CmdResponse<R>> | undefined;

/**
 * The launcher's side of the cmd service, one method per RPC; one that is missing answers UNIMPLEMENTED.
 *
 * An error that is thrown travels as `success` false with its text (Exec, GuestPing and GetVMStats: as a gRPC error
 * of code Unknown). In a VMIRequest `vmi` and `options` are present, and `vmi` holds a JSON object: calls that break
 * that rule are answered before a method sees them. Everything else is as the peer sent it: `timeoutSeconds` may be
 * zero or negative, `options` bytes may be no JSON.
 */
export type CmdHandlers = {
  readonly [R in CmdRpc as Uncapitalize<R>]?: (
    request: CmdRequest<R>,
    context: CallContext,
  ) => Promise<CmdAnswer<R>> | Promise<void> | CmdAnswer<R>;
};
