import { setTimeout as sleep } from 'node:timers/promises';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
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

/** A launcher that lives in this process and speaks the real wire. */
export interface FakeLauncher extends AsyncDisposable {
  readonly calls: readonly FakeCall[];
  answer(rpc: CmdRpc, answer: FakeAnswer): void;
  /** JSON text of the domain that GetDomain tells; empty = none. */
  domain: string;
  versions: readonly number[];
  /** Ends like a process that is killed: connections cut, the socket file stays. */
  kill(): void;
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
const INFO = '/kubevirt.cmd.info.CmdInfo/Info';
const identity = (bytes: Buffer): Buffer => bytes;

/** Encodes the versions of an info answer: field 1, packed uint32. */
function infoAnswer(versions: readonly number[]): Buffer {
  return Buffer.from([0x0a, versions.length, ...versions]);
}

function render(rpc: CmdRpc, answer: FakeAnswer, domain: string): Buffer {
  const { success = true, message = '', entity } = answer;
  const response = { success, message };
  if (rpc === 'GetDomain') {
    const text = entity === undefined ? domain : JSON.stringify(entity);
    return Buffer.from(
      cmdV1.DomainResponse.encode(cmdV1.DomainResponse.fromPartial({ response, domain: text })).finish(),
    );
  }
  if (rpc === 'GetGuestInfo') {
    const guestInfoResponse = JSON.stringify(entity ?? {});
    const whole = cmdV1.GuestInfoResponse.fromPartial({ response, guestInfoResponse });
    return Buffer.from(cmdV1.GuestInfoResponse.encode(whole).finish());
  }
  return Buffer.from(cmdV1.Response.encode(cmdV1.Response.fromPartial(response)).finish());
}

type Callback = (error: { code: number; details: string } | null, value?: Buffer) => void;

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
  const calls: FakeCall[] = [];
  const answers = new Map<CmdRpc, FakeAnswer>();
  const state = { domain: '', versions: [1] as readonly number[] };
  const note = (call: FakeCall): void => {
    calls.push(call);
    onCall(call);
  };
  const serve = async (rpc: CmdRpc, request: Buffer, callback: Callback): Promise<void> => {
    note({ rpc, request });
    const answer = answers.get(rpc) ?? {};
    if (answer.hangs === true) return;
    if (answer.delayMs !== undefined) await sleep(answer.delayMs);
    if (answer.code !== undefined) callback({ code: answer.code, details: answer.codeMessage ?? '' });
    else callback(null, render(rpc, answer, state.domain));
  };
  const definition: Record<string, unknown> = {};
  const implementation: UntypedServiceImplementation = {};
  const method = (path: string) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  });
  for (const rpc of CMD_RPC_NAMES) {
    definition[rpc] = method(`${CMD}${rpc}`);
    implementation[rpc] = (call: { request: Buffer }, callback: Callback) => void serve(rpc, call.request, callback);
  }
  server.addService(definition as ServiceDefinition, implementation);
  server.addService({ Info: method(INFO) } as unknown as ServiceDefinition, {
    Info: (call: { request: Buffer }, callback: Callback) => {
      note({ rpc: 'Info', request: call.request });
      callback(null, infoAnswer(state.versions));
    },
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    calls,
    answer: (rpc, answer) => void answers.set(rpc, answer),
    get domain() {
      return state.domain;
    },
    set domain(text) {
      state.domain = text;
    },
    get versions() {
      return state.versions;
    },
    set versions(versions) {
      state.versions = versions;
    },
    kill: () => server.forceShutdown(),
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}

/** gRPC status codes by name, for {@link FakeAnswer.code}. */
export const GRPC_STATUS = status;
