/** A DHCPv6 option: its code and its bytes. */
export type Dhcp6Option = readonly [code: number, value: Buffer];

/** A DHCPv6 message between client and server (not a relayed one). */
export interface Dhcp6Message {
  readonly kind: number;
  readonly transaction: Buffer;
  readonly options: readonly Dhcp6Option[];
}

const HEADER_BYTES = 4;
const OPTION_HEADER_BYTES = 4;
/** Relay messages have another form; they begin here. */
const FIRST_RELAY_KIND = 12;

/** Reads a message; undefined for a relayed one and for bytes that do not add up. */
export function parseDhcp6(bytes: Buffer): Dhcp6Message | undefined {
  const kind = bytes[0];
  if (kind === undefined || bytes.length < HEADER_BYTES || kind >= FIRST_RELAY_KIND) return undefined;
  const options = parseDhcp6Options(bytes.subarray(HEADER_BYTES));
  return options === undefined ? undefined : { kind, transaction: Buffer.from(bytes.subarray(1, 4)), options };
}

/** Reads options up to the end of the bytes; undefined when the last one is cut short. */
function parseDhcp6Options(bytes: Buffer): readonly Dhcp6Option[] | undefined {
  const options: Dhcp6Option[] = [];
  for (let at = 0; at < bytes.length;) {
    if (at + OPTION_HEADER_BYTES > bytes.length) return undefined;
    const end = at + OPTION_HEADER_BYTES + bytes.readUInt16BE(at + 2);
    if (end > bytes.length) return undefined;
    options.push([bytes.readUInt16BE(at), Buffer.from(bytes.subarray(at + OPTION_HEADER_BYTES, end))]);
    at = end;
  }
  return options;
}

/** Bytes of a message. */
export function renderDhcp6(message: Dhcp6Message): Buffer {
  return Buffer.concat([Buffer.from([message.kind]), message.transaction, renderDhcp6Options(message.options)]);
}

/** Bytes of options, one after the other. */
export function renderDhcp6Options(options: readonly Dhcp6Option[]): Buffer {
  const parts = options.flatMap(([code, value]) => {
    const header = Buffer.alloc(OPTION_HEADER_BYTES);
    header.writeUInt16BE(code, 0);
    header.writeUInt16BE(value.length, 2);
    return [header, value];
  });
  return Buffer.concat(parts);
}
