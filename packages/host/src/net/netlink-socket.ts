import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import { describeErrno, libc, throwErrno } from '../libc.ts';
import type { NetworkNamespace } from './namespace.ts';
import { parseMessages, renderMessage } from './netlink-message.ts';
import type { Attribute, NetlinkMessage } from './netlink-message.ts';

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const NETLINK_ROUTE = 0;
const MSG_DONTWAIT = 0x40;
const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLM_F_DUMP = 0x300;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const DATAGRAM_BYTES = 256 * 1024;

/** A routing netlink socket that lives in one network namespace, wherever its user is. */
export class NetlinkSocket implements Disposable {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(DATAGRAM_BYTES);
  /** Answers to changes that were read while another answer was looked for. */
  readonly #answers = new Map<number, number>();
  #sequence = 0;
  #open = true;

  constructor(namespace: NetworkNamespace | undefined) {
    const make = (): number => libc().socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    this.#fd = namespace === undefined ? make() : namespace.run(make);
    if (this.#fd < 0) throwErrno('create a netlink socket');
  }

  /** Asks for a list; the kernel answers without waiting for anything, so this is synchronous. */
  dump(type: number, fixed: Uint8Array, attributes: readonly Attribute[] = []): Buffer[] {
    const sequence = this.#next();
    const request = renderMessage({ type, flags: NLM_F_REQUEST | NLM_F_DUMP, sequence }, fixed, attributes);
    if (libc().send(this.#fd, request, request.length, 0) < 0) throwErrno('ask the kernel by netlink');
    const found: Buffer[] = [];
    for (;;) {
      for (const message of this.#receive()) {
        if (message.sequence !== sequence) {
          this.#keep(message);
          continue;
        }
        if (message.type === NLMSG_DONE) return found;
        if (message.type === NLMSG_ERROR) throw failure('list', message.payload.readInt32LE(0));
        found.push(Buffer.from(message.payload));
      }
    }
  }

  /**
   * Asks for one change and waits for the kernel's answer. The kernel works within the send call, which can take
   * milliseconds (it waits for readers of the old state), so that call runs on a pool thread.
   *
   * @throws {HostError} `Netlink` with the errno; the message is `doing` and the kernel's text.
   */
  async change(
    doing: string,
    type: number,
    flags: number,
    fixed: Uint8Array,
    attributes: readonly Attribute[],
  ): Promise<void> {
    const sequence = this.#next();
    const head = { type, flags: NLM_F_REQUEST | NLM_F_ACK | flags, sequence };
    const request = renderMessage(head, fixed, attributes);
    await new Promise<void>((resolve, reject) => {
      libc().send.async(this.#fd, request, request.length, 0, (error: unknown, sent) => {
        if (error !== null && error !== undefined) reject(HostError.from(error, 'Netlink', doing));
        else if (sent < 0) reject(new HostError('Netlink', `${doing}: the kernel did not take the message`));
        else resolve();
      });
    });
    while (!this.#answers.has(sequence)) for (const message of this.#receive()) this.#keep(message);
    const code = this.#answers.get(sequence) ?? 0;
    this.#answers.delete(sequence);
    if (code !== 0) throw failure(doing, code);
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    fs.closeSync(this.#fd);
  }

  #keep(message: NetlinkMessage): void {
    if (message.type === NLMSG_ERROR) this.#answers.set(message.sequence, message.payload.readInt32LE(0));
  }

  #next(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  #receive(): ReturnType<typeof parseMessages> {
    const length = libc().recv(this.#fd, this.#buffer, this.#buffer.length, MSG_DONTWAIT);
    if (length < 0) throwErrno('read the kernel’s netlink answer');
    return parseMessages(this.#buffer.subarray(0, length));
  }
}

function failure(doing: string, code: number): HostError {
  const { name, text } = describeErrno(-code);
  return new HostError('Netlink', `${doing}: ${text}`, { errno: name });
}
