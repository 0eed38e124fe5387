import { setTimeout as sleep } from 'node:timers/promises';
import { openHistory } from '@virtwire/shared-proto/history';
import { type Fields, openReleaseSchema, type ReleaseRpc } from '../emulate/schema/release-schema.ts';
import { dialGrpc, type GrpcConnection, type RawAnswer } from '../emulate/transport/grpc-client.ts';
import { CompatError } from '../errors.ts';

/** An answer of a peer, as far as it can be read. */
export interface ProbeAnswer {
  readonly code: number;
  readonly details: string;
  /** What the answer says of its outcome; undefined when it failed with a gRPC status. */
  readonly outcome: { readonly success: boolean; readonly message: string } | undefined;
  readonly fields: Fields;
  /** Why the bytes are no answer. */
  readonly flaw: string | undefined;
}

/** Status codes with a meaning here. */
export const CODE = { ok: 0, unknown: 2, deadline: 4, unimplemented: 12, internal: 13, unavailable: 14 } as const;

/** How long a probe takes at most, whatever the peer does. */
const TOTAL_LIMIT_MS = 300_000;
const MAX_SILENCES = 2;
const MAX_LOSSES = 3;
const REDIAL_AFTER_MS = 200;
/** A call of the contract may take so much longer than its deadline, for a busy machine. */
const GRACE_MS = 2_000;
const USER_AGENT = 'virtwire-probe';

/** A peer is given up: it hangs, or is gone. */
export class PeerGone extends CompatError {
  constructor(message: string) {
    super('PeerCrashed', message);
  }
}

/** The messages of the newest release: older peers ignore what they do not know. */
function newestRpcs(): ReadonlyMap<string, ReleaseRpc> {
  return openReleaseSchema(openHistory().releases.at(-1) ?? '').rpcs;
}

/** A live peer. Every call ends; after a few that did not, or connections that were lost, it is given up. */
export class ProbePeer implements Disposable {
  readonly #socket: string;
  readonly #rpcs = newestRpcs();
  readonly #endsAtMs = performance.now() + TOTAL_LIMIT_MS;
  readonly #authority: string;
  #connection: GrpcConnection;
  #silences = 0;
  #losses = 0;

  private constructor(socket: string, authority: string, connection: GrpcConnection) {
    this.#socket = socket;
    this.#authority = authority;
    this.#connection = connection;
  }

  /** @throws {CompatError} `ConnectFailed`. */
  static async dial(socket: string, authority = 'localhost'): Promise<ProbePeer> {
    try {
      return new ProbePeer(socket, authority, await dialGrpc(socket, { authority, userAgent: USER_AGENT }));
    } catch (caught) {
      const text = `nobody answers at ${socket} within 2 s: is the process that serves it still there?`;
      throw new CompatError('ConnectFailed', text, { cause: caught });
    }
  }

  /** Calls an RPC with fields of the newest schema. @throws {PeerGone} when the peer is given up. */
  async call(path: string, fields: Fields, timeoutMs: number): Promise<ProbeAnswer> {
    const rpc = this.#rpcs.get(path);
    const request = rpc === undefined ? new Uint8Array() : rpc.encodeRequest(fields);
    return read(rpc, await this.callRaw(path, request, timeoutMs));
  }

  /** Calls with any bytes. @throws {PeerGone} */
  async callRaw(path: string, request: Uint8Array, timeoutMs: number): Promise<RawAnswer> {
    if (performance.now() > this.#endsAtMs) throw new PeerGone('it takes too long altogether');
    if (!this.#connection.isOpen) await this.#redial();
    const answer = await this.#connection.call(path, request, timeoutMs + GRACE_MS);
    this.#silences = answer.code === CODE.deadline ? this.#silences + 1 : 0;
    if (this.#silences >= MAX_SILENCES) throw new PeerGone(`it has not answered ${MAX_SILENCES} calls in a row`);
    return answer;
  }

  async #redial(): Promise<void> {
    this.#losses += 1;
    if (this.#losses > MAX_LOSSES) throw new PeerGone(`it has broken off ${MAX_LOSSES} connections`);
    await sleep(REDIAL_AFTER_MS);
    try {
      this.#connection[Symbol.dispose]();
      this.#connection = await dialGrpc(this.#socket, { authority: this.#authority, userAgent: USER_AGENT });
    } catch (caught) {
      throw new PeerGone(`it is gone: ${caught instanceof Error ? caught.message : String(caught)}`);
    }
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

function read(rpc: ReleaseRpc | undefined, { code, details, bytes }: RawAnswer): ProbeAnswer {
  const failed = { code, details, outcome: undefined, fields: {}, flaw: undefined };
  if (code !== CODE.ok || rpc === undefined) return failed;
  try {
    const { fields } = rpc.decodeResponse(bytes);
    // Without a nested outcome an answer counts as success.
    const nested = rpc.isPlainResponse ? fields : ((fields['response'] ?? { success: true }) as Fields);
    const { success, message } = nested as { readonly success?: boolean; readonly message?: string };
    return { ...failed, fields, outcome: { success: success === true, message: message ?? '' } };
  } catch (caught) {
    return {
      ...failed,
      flaw: `its answer is no message: ${caught instanceof Error ? caught.message : String(caught)}`,
    };
  }
}
