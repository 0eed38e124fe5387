import type { RecordedCall } from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import type { Fields, ReleaseSchema } from '../schema/release-schema.ts';
import { GRPC } from '../transport/grpc-frames.ts';
import { type GrpcServer, type IncomingCall, type OutgoingAnswer, serveGrpc } from '../transport/grpc-server.ts';
import type { EventAnswer } from './domain-store.ts';

/** What a notify server works on. */
export interface NotifyServerDeps {
  readonly facts: LineFacts;
  readonly schema: ReleaseSchema;
  readonly takeDomainEvent: (request: Fields) => EventAnswer;
  readonly takeK8sEvent: (request: Fields) => EventAnswer;
  /** The process ends, once the answer is out: a Go handler has no recovery. */
  readonly crash: () => void;
  readonly record: (call: Omit<RecordedCall, 'seq' | 'atMs'>) => void;
}

/** Serves the notify socket as a handler of a line does. */
export function serveEmulatedNotify(socketPath: string, deps: NotifyServerDeps): Promise<GrpcServer> {
  return serveGrpc(socketPath, (call) => Promise.resolve(answer(call, deps)));
}

function answer(call: IncomingCall, deps: NotifyServerDeps): OutgoingAnswer {
  const { schema } = deps;
  const rpc = schema.rpcs.get(call.path);
  const [, service = '', method = ''] = call.path.split('/');
  if (rpc === undefined || service.startsWith('kubevirt.cmd.')) {
    const isKnown = service === 'kubevirt.notify.v1.Notify' || service === 'kubevirt.notify.info.NotifyInfo';
    const details = isKnown ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
    return finish(call, method, deps, {}, [], { kind: 'status', code: GRPC.unimplemented, details });
  }
  let request: ReturnType<typeof rpc.decodeRequest>;
  try {
    request = rpc.decodeRequest(call.request);
  } catch {
    const details = 'grpc: error unmarshalling request: proto: cannot parse invalid wire-format data';
    return finish(call, rpc.name, deps, {}, [], { kind: 'status', code: GRPC.internal, details });
  }
  const { fields, dropped } = request;
  const result = run(rpc.name, fields, deps);
  const bytes = rpc.encodeResponse(result);
  return finish(call, rpc.name, deps, fields, dropped, { kind: 'message', bytes }, result);
}

function run(rpc: string, request: Fields, deps: NotifyServerDeps): Fields {
  if (rpc === 'Info') return { supportedNotifyVersions: deps.facts.shared.protocolVersions.value };
  const result = rpc === 'HandleDomainEvent' ? deps.takeDomainEvent(request) : deps.takeK8sEvent(request);
  // The event is in the store by then; it is the controller that dies of it.
  if (result.isFatal) deps.crash();
  return { success: result.success, message: result.message };
}

function finish(
  call: IncomingCall,
  rpc: string,
  { record }: NotifyServerDeps,
  request: Fields,
  droppedFields: readonly string[],
  outgoing: OutgoingAnswer,
  response?: Fields,
): OutgoingAnswer {
  record({
    channel: 'notify',
    rpc,
    authority: call.authority,
    request,
    requestBytes: call.request,
    droppedFields,
    timeoutMs: call.timeoutMs,
    code: outgoing.kind === 'status' ? outgoing.code : outgoing.kind === 'message' ? GRPC.ok : GRPC.unavailable,
    details: outgoing.kind === 'status' ? outgoing.details : '',
    response,
  });
  return outgoing;
}
