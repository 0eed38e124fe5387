import type { FakeDomain } from '../domain.ts';
import type { FakeHypervisor } from '../hypervisor.ts';
import type { Session } from '../session.ts';
import type { StreamSource } from '../server-stream.ts';
import type { ProcedureName, StreamProcedureName } from '../../caller.ts';
import type { DomainRef, Procedures, StreamProcedures } from '../../gen/types.gen.ts';

/** What the handler of a call can reach. */
export interface CallContext {
  readonly hypervisor: FakeHypervisor;
  readonly session: Session;
  /** How many file descriptors came with the call. */
  readonly descriptors: number;
  readonly uri: string;
  /** Callback ids come from one counter for all clients. */
  readonly nextCallbackId: () => number;
}

/** Reply of a call that opens a stream. */
export interface StreamReply<Ret = unknown> {
  readonly ret: Ret;
  readonly source: StreamSource;
}

/** Handlers by procedure name; args and results are the client's own types. */
export type CallHandlers = {
  readonly [P in ProcedureName]?: (
    args: Procedures[P]['args'],
    context: CallContext,
  ) => Procedures[P]['ret'] | Promise<Procedures[P]['ret']>;
} & {
  readonly [P in StreamProcedureName]?: (
    args: StreamProcedures[P]['args'],
    context: CallContext,
  ) => StreamReply<StreamProcedures[P]['ret']>;
};

/** The domain that a call is about. */
export function domainOf(args: { readonly dom: DomainRef }, context: CallContext): FakeDomain {
  return context.hypervisor.byRef(args.dom);
}
