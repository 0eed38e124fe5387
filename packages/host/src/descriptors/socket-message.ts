import { describeErrno, libc } from '../libc.ts';
import { HostError } from '../errors.ts';
import { Descriptor } from './descriptor.ts';

const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
/** `struct msghdr`, `struct iovec` and `struct cmsghdr` of 64-bit Linux. */
const MSGHDR_BYTES = 56;
const IOVEC_BYTES = 16;
const CMSGHDR_BYTES = 16;
const CONTROL_LENGTH_OFFSET = 40;
const FD_BYTES = 4;

/** One message of a unix socket. Disposing of it closes the descriptors that came with it. */
export interface SocketMessage extends Disposable {
  /** Empty when the peer has closed. */
  readonly data: Buffer;
  readonly descriptors: readonly Descriptor[];
  /** Bytes of control data, descriptors or other, that came along. */
  readonly controlBytes: number;
}

/**
 * A `msghdr` with all that it points to, in one piece: what is passed to the kernel is what keeps it alive. The parts
 * after `bytes` are views of it.
 */
interface Message {
  readonly bytes: Buffer;
  readonly data: Buffer;
  readonly control: Buffer;
}

function createMessage(dataBytes: number, controlBytes: number): Message {
  const dataAt = MSGHDR_BYTES + IOVEC_BYTES;
  const controlAt = aligned(dataAt + dataBytes);
  const bytes = Buffer.alloc(controlAt + controlBytes);
  const address = libc().addressOf(bytes);
  bytes.writeBigUInt64LE(address + BigInt(MSGHDR_BYTES), 16);
  bytes.writeBigUInt64LE(1n, 24);
  bytes.writeBigUInt64LE(address + BigInt(controlAt), 32);
  bytes.writeBigUInt64LE(BigInt(controlBytes), CONTROL_LENGTH_OFFSET);
  bytes.writeBigUInt64LE(address + BigInt(dataAt), MSGHDR_BYTES);
  bytes.writeBigUInt64LE(BigInt(dataBytes), MSGHDR_BYTES + 8);
  return { bytes, data: bytes.subarray(dataAt, dataAt + dataBytes), control: bytes.subarray(controlAt) };
}

/** The next multiple of eight, where the kernel expects control data and its parts. */
function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** Throws the failure of the call made just before, unless it only came too early. */
function throwUnlessEarly(doing: string): void {
  const { name, text } = describeErrno(libc().errno());
  if (name === 'EAGAIN' || name === 'EINTR') return;
  throw new HostError('Syscall', `${doing}: ${text}`, { errno: name });
}

/**
 * Sends one zero byte with one descriptor, as libvirt and others take them.
 *
 * @returns false when the socket cannot take it now.
 * @throws {HostError} `Syscall`
 */
export function trySendDescriptor(socket: number, descriptor: number): boolean {
  const { bytes, control } = createMessage(1, aligned(CMSGHDR_BYTES + FD_BYTES));
  control.writeBigUInt64LE(BigInt(CMSGHDR_BYTES + FD_BYTES), 0);
  control.writeInt32LE(SOL_SOCKET, 8);
  control.writeInt32LE(SCM_RIGHTS, 12);
  control.writeInt32LE(descriptor, CMSGHDR_BYTES);
  if (libc().sendmsg(socket, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  throwUnlessEarly(`send descriptor ${descriptor}`);
  return false;
}

/**
 * Receives one message, of as many bytes as are asked for at most.
 *
 * @returns undefined when none is there yet.
 * @throws {HostError} `Syscall`
 */
export function tryReceiveMessage(
  socket: number,
  { dataBytes, controlBytes }: { readonly dataBytes: number; readonly controlBytes: number },
): SocketMessage | undefined {
  const { bytes, data, control } = createMessage(dataBytes, controlBytes);
  const received = libc().recvmsg(socket, bytes, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0) {
    throwUnlessEarly('receive a message');
    return undefined;
  }
  const taken = Number(bytes.readBigUInt64LE(CONTROL_LENGTH_OFFSET));
  const descriptors = descriptorsIn(control.subarray(0, taken));
  return {
    data: data.subarray(0, received),
    descriptors,
    controlBytes: taken,
    [Symbol.dispose]: () => {
      for (const descriptor of descriptors) descriptor[Symbol.dispose]();
    },
  };
}

/** Descriptors of the `SCM_RIGHTS` parts of what the kernel has written. */
function descriptorsIn(control: Buffer): readonly Descriptor[] {
  const found: Descriptor[] = [];
  for (let at = 0; at + CMSGHDR_BYTES <= control.length;) {
    const length = Number(control.readBigUInt64LE(at));
    const isRights = control.readInt32LE(at + 8) === SOL_SOCKET && control.readInt32LE(at + 12) === SCM_RIGHTS;
    const end = Math.min(at + length, control.length);
    for (let fd = at + CMSGHDR_BYTES; isRights && fd + FD_BYTES <= end; fd += FD_BYTES) {
      found.push(new Descriptor(control.readInt32LE(fd)));
    }
    at += Math.max(CMSGHDR_BYTES, aligned(length));
  }
  return found;
}
