import { CMD_RPCS, type CmdRpc } from '@virtwire/shared-proto';
import { hostileJson } from './hostile-json.ts';
import type { Random } from './random.ts';

/** What requests are made of. */
export interface RequestParts {
  /** VMIs, as JSON values. */
  readonly vmis: readonly object[];
  /** The domain that runs. */
  readonly domainName: string;
  /** Recorded requests of the same RPC. */
  readonly recorded: readonly Buffer[];
}

interface AnyCodec {
  decode(bytes: Uint8Array): Record<string, unknown>;
  fromPartial(init: object): Record<string, unknown>;
  encode(message: Record<string, unknown>): { finish(): Uint8Array };
}

const NUMBERS: readonly number[] = [0, 1, 2, 2 ** 31 - 1];
/** One field in so many is changed beside the documents. */
const RARELY = 8;

/** A request that reads well as a message, and whose VMI, options and fields say what none should. */
export function hostileRequest(rpc: CmdRpc, { vmis, domainName, recorded }: RequestParts, random: Random): Buffer {
  const codec = CMD_RPCS[rpc].request as unknown as AnyCodec;
  const message = recorded.length === 0 ? codec.fromPartial({}) : codec.decode(random.pick(recorded));
  if ('domainName' in message) message['domainName'] = domainName;
  changeFields(message, random);
  if ('vmi' in message) message['vmi'] = { vmiJson: jsonBytes(hostileJson(random.pick(vmis), random)) };
  return Buffer.from(codec.encode(message).finish());
}

function changeFields(message: object, random: Random): void {
  for (const [key, value] of Object.entries(message) as [string, unknown][]) {
    if (value instanceof Uint8Array) Reflect.set(message, key, hostileDocument(value, random));
    else if (typeof value === 'object' && value !== null) changeFields(value, random);
    else if (random.below(RARELY) === 0) Reflect.set(message, key, hostileScalar(value, random));
  }
}

function hostileDocument(bytes: Uint8Array, random: Random): Uint8Array {
  let document: unknown = {};
  try {
    document = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    if (bytes.length > 0) return bytes;
  }
  return jsonBytes(hostileJson(document, random));
}

function hostileScalar(value: unknown, random: Random): unknown {
  if (typeof value === 'number') return random.pick(NUMBERS);
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return random.pick(['', 'x', '\u0000', 'x'.repeat(10_000), '{"execute":1}']);
  return value;
}

function jsonBytes(document: unknown): Buffer {
  return Buffer.from(document === undefined ? '' : JSON.stringify(document));
}
