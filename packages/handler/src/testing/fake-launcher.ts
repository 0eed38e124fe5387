import { setTimeout as sleep } from 'node:timers/promises';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { CMD_RPC_NAMES, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';

/** How a fake launcher answers one RPC. */
export interface FakeAnswer {
  readonly success?: boolean;
  readonly message?: string;
  /** gRPC status instead of an answer. */
  readonly code?: number;
  readonly codeMessage?: string;
  /** JSON of GetGuestInfo and GetDomain. */
  readonly entity?: unknown;
  /** Answers so much later. */
  readonly delayMs?: number;
  /** Never answers. */
  readonly hangs?: boolean;
}

/** One request that a fake launcher received. */
export interface FakeCall {
  readonly rpc: CmdRpc | 'Info';
  readonly request: Uint8Array;
}

/** A launcher that speaks the real wire and has no hypervisor behind it. */
export interface FakeLauncher {
  readonly calls: readonly FakeCall[];
  answer(rpc: CmdRpc, answer: FakeAnswer): void;
  /** JSON text of the domain that GetDomain tells; empty = none. */
  domain: string;
  versions: readonly number[];
  /** Cuts all connections and stops listening. */
  kill(): void;
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
const INFO = '/kubevirt.cmd.info.CmdInfo/Info';
const identity = (bytes: Buffer): Buffer => bytes;

/** Encodes the versions of an info answer: field 1, packed uint32. */
function infoAnswer(versions: readonly number[]): Buffer {
  return Buffer.from([0x0a, versions.length, ...versions]);
}

function render(rpc: CmdRpc, answer: FakeAnswer, domain: string): Uint8Array {
  const { success = true, message = '', entity } = answer;
  const response = { success, message };
  if (rpc === 'GetDomain') {
    const text = entity === undefined ? domain : JSON.stringify(entity);
    return cmdV1.DomainResponse.encode(cmdV1.DomainResponse.fromPartial({ response, domain: text })).finish();
  }
  if (rpc === 'GetGuestInfo') {
    const whole = cmdV1.GuestInfoResponse.fromPartial({ response, guestInfoResponse: JSON.stringify(entity ?? {}) });
    return cmdV1.GuestInfoResponse.encode(whole).finish();
  }
  return cmdV1.Response.encode(cmdV1.Response.fromPartial(response)).finish();
}

function method(path: string): object {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

type Callback = (error: { code: number; details: string } | null, value?: Buffer) => void;
type Handle = (call: { readonly request: Buffer }, callback: Callback) => void;

/** The scripted side of a fake launcher. */
class Script implements FakeLauncher {
  readonly calls: FakeCall[] = [];
  domain = '';
  versions: readonly number[] = [1];
  readonly #answers = new Map<CmdRpc, FakeAnswer>();
  readonly #onCall: (call: FakeCall) => void;
  readonly #server: Server;

  constructor(server: Server, onCall: (call: FakeCall) => void) {
    this.#server = server;
    this.#onCall = onCall;
  }

  answer(rpc: CmdRpc, answer: FakeAnswer): void {
    this.#answers.set(rpc, answer);
  }

  kill(): void {
    this.#server.forceShutdown();
  }

  info(): Handle {
    return ({ request }, callback) => {
      this.#note({ rpc: 'Info', request });
      callback(null, infoAnswer(this.versions));
    };
  }

  serve(rpc: CmdRpc): Handle {
    return ({ request }, callback) => void this.#serve(rpc, request, callback);
  }

  #note(call: FakeCall): void {
    this.calls.push(call);
    this.#onCall(call);
  }

  async #serve(rpc: CmdRpc, request: Buffer, callback: Callback): Promise<void> {
    this.#note({ rpc, request });
    const answer = this.#answers.get(rpc) ?? {};
    if (answer.hangs === true) return;
    if (answer.delayMs !== undefined) await sleep(answer.delayMs);
    if (answer.code === undefined) callback(null, Buffer.from(render(rpc, answer, this.domain)));
    else callback({ code: answer.code, details: answer.codeMessage ?? '' });
  }
}

/**
 * Starts a fake launcher on a unix socket.
 *
 * @param onCall told each request before it is answered.
 */
export async function startFakeLauncher(
  socketPath: string,
  onCall: (call: FakeCall) => void = () => undefined,
): Promise<FakeLauncher> {
  const server = new Server();
  const script = new Script(server, onCall);
  const definition: Record<string, object> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const rpc of CMD_RPC_NAMES) {
    definition[rpc] = method(`${CMD}${rpc}`);
    implementation[rpc] = script.serve(rpc);
  }
  server.addService(definition as unknown as ServiceDefinition, implementation);
  server.addService({ Info: method(INFO) } as unknown as ServiceDefinition, { Info: script.info() });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return script;
}
