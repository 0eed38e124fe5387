import type { CallOutcome, HandlerTamper, RecordedCall } from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import type { Fields, ReleaseRpc, ReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc, type GrpcConnection, type RawAnswer } from '../transport/grpc-client.ts';
import { GRPC } from '../transport/grpc-frames.ts';
import { readable } from '../recorder.ts';
import { refusalText, statusText } from './call-errors.ts';

/** What a client of a line needs. */
export interface ClientDeps {
  readonly facts: LineFacts;
  readonly schema: ReleaseSchema;
  readonly timeoutFactor: number;
  readonly tamper: HandlerTamper;
  readonly record: (call: Omit<RecordedCall, 'seq' | 'atMs'>) => void;
}

/** A connection of a handler to a launcher. */
export interface LauncherClient extends Disposable {
  readonly isOpen: boolean;
  call(rpc: string, request: Fields): Promise<CallOutcome>;
}

/** RPCs whose deadline the caller gives, with five seconds on top. */
const CALLER_TIMED: readonly string[] = ['Exec', 'GuestPing'];

/**
 * Connects to a launcher: dial, Info, version check.
 *
 * @throws {Error} with the handler's words.
 * @source wire.md 3
 */
export async function connectLauncher(
  deps: ClientDeps,
  socketPath: string,
  outcomes: CallOutcome[],
): Promise<LauncherClient> {
  const { facts, schema } = deps;
  const { authority, userAgent } = facts.shared;
  const connection = await dialGrpc(socketPath, {
    authority: authority.value === 'socketPath' ? socketPath : authority.value,
    userAgent: userAgent.value,
  });
  const client = new Client(deps, connection);
  const info = await client.info(schema.cmdInfo);
  outcomes.push(info);
  const problem = info.ok ? versionProblem(info.response) : `could not check cmd server version: ${info.error ?? ''}`;
  if (problem === undefined) return client;
  client[Symbol.dispose]();
  throw new Error(problem);
}

/** @source releases.json eras.negotiation, cmdVersionsAcceptedByHandler */
function versionProblem(response: Fields | undefined): string | undefined {
  const offered = (response?.['supportedCmdVersions'] ?? []) as readonly number[];
  if (offered.includes(1)) return undefined;
  return `no compatible version found, server: [${offered.join(' ')}], client: [1]`;
}

class Client implements LauncherClient {
  readonly #deps: ClientDeps;
  readonly #connection: GrpcConnection;

  constructor(deps: ClientDeps, connection: GrpcConnection) {
    this.#deps = deps;
    this.#connection = connection;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  info(rpc: ReleaseRpc): Promise<CallOutcome> {
    return this.#run(rpc, {}, this.#deps.facts.handler.timeouts.value.queries);
  }

  async call(name: string, request: Fields): Promise<CallOutcome> {
    const rpc = this.#deps.schema.cmdRpcs.get(name);
    if (rpc === undefined) {
      const error = `${this.#deps.facts.line} has no RPC ${name}`;
      return { rpc: name, ok: false, code: GRPC.unimplemented, error, response: undefined };
    }
    return this.#run(rpc, request, this.#timeoutOf(rpc, request));
  }

  #timeoutOf(rpc: ReleaseRpc, request: Fields): number {
    const { byRpc, queries, vmiRequests } = this.#deps.facts.handler.timeouts.value;
    if (CALLER_TIMED.includes(rpc.name)) return Number(request['timeoutSeconds'] ?? 0) + 5;
    return byRpc[rpc.name] ?? (rpc.hasVmi ? vmiRequests : queries);
  }

  async #run(rpc: ReleaseRpc, request: Fields, timeoutS: number): Promise<CallOutcome> {
    const { timeoutFactor, tamper, facts } = this.#deps;
    const encoded = rpc.encodeRequest(request);
    const bytes = tamper.request?.(rpc.name, encoded) ?? encoded;
    const timeoutMs = timeoutS * 1_000 * timeoutFactor;
    const answer = await this.#connection.call(rpc.path, bytes, timeoutMs);
    const response = this.#record(rpc, request, bytes, timeoutMs, answer);
    if (answer.code !== GRPC.ok) {
      const error = statusText(facts.handler, rpc.name, answer.code, answer.details);
      return { rpc: rpc.name, ok: error === undefined, code: answer.code, error, response: undefined };
    }
    const message = refusalOf(rpc, response ?? {});
    const error = message === undefined ? undefined : refusalText(rpc.name, message);
    return { rpc: rpc.name, ok: error === undefined, code: GRPC.ok, error, response: readable(response ?? {}) };
  }

  #record(
    rpc: ReleaseRpc,
    request: Fields,
    requestBytes: Uint8Array,
    timeoutMs: number,
    { code, details, bytes }: RawAnswer,
  ): Fields | undefined {
    const decoded = code === GRPC.ok ? rpc.decodeResponse(bytes) : undefined;
    this.#deps.record({
      channel: 'cmd',
      rpc: rpc.name,
      authority: this.#connection.authority,
      request,
      requestBytes,
      droppedFields: decoded?.dropped ?? [],
      timeoutMs,
      code,
      details,
      response: decoded?.fields,
    });
    return decoded?.fields;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

/**
 * The message of a refusal; undefined for success. A missing nested Response counts as success, and so does a
 * screenshot whatever it says.
 *
 * @source releases.json eras.nilResponseTolerance; wire.md 6 GetScreenshot
 */
function refusalOf(rpc: ReleaseRpc, response: Fields): string | undefined {
  if (rpc.name === 'Info' || rpc.name === 'GetScreenshot') return undefined;
  const outcome = rpc.isPlainResponse ? response : (response['response'] as Fields | undefined);
  if (outcome === undefined || outcome['success'] === true) return undefined;
  const { message } = outcome;
  return typeof message === 'string' ? message : '';
}
