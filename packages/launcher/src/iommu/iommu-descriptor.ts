import { stat } from 'node:fs/promises';
import { Descriptor, HostError, UnixClient } from '@virtwire/host';
import type { SocketMessage } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError, textOf } from '../errors.ts';

/** The node's device plugin sends as soon as it is connected to. KubeVirt waits without an end. */
const LIMIT_MS = 5_000;
const DATA_BYTES = 32;
const CONTROL_BYTES = 4_096;
const RECEIVED = Buffer.of(0);

/** The open `/dev/iommu` that the node passes into a pod whose VM has devices behind IOMMUFD. */
export interface IommuDescriptor extends Disposable {
  /**
   * Receives it, once, from the socket that the pod has when there is one; kept from then on.
   *
   * @returns whether it is held.
   * @throws {LauncherError} `IommuFailed` when the socket is there and does not give one; it may be tried again.
   */
  receive(): Promise<boolean>;
  /**
   * A copy of what is held, for the caller to close; undefined when nothing is.
   *
   * @throws {LauncherError} `IommuFailed`
   */
  copy(): Descriptor | undefined;
}

/**
 * Creates what holds the descriptor for a launcher's life.
 *
 * @param socketPath the device plugin's, in a place that nobody but the pod's own containers can change.
 * @param limitMs for the connection, and for what comes over it.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/iommufd.go and manager.go, generateConverterContext
 */
export function createIommuDescriptor(socketPath: string, log: Logger, limitMs = LIMIT_MS): IommuDescriptor {
  let held: Descriptor | undefined;
  let receiving: Promise<boolean> | undefined;
  let isOver = false;

  async function receive(): Promise<boolean> {
    if (!(await exists(socketPath))) return false;
    const received = await receiveDescriptor(socketPath, limitMs);
    if (isOver) {
      received[Symbol.dispose]();
      return false;
    }
    held = received;
    log.debug(`Received IOMMUFD file descriptor: ${received.fd}`);
    return true;
  }

  return {
    async receive() {
      if (held !== undefined) return true;
      receiving ??= receive().finally(() => {
        receiving = undefined;
      });
      return await receiving;
    },
    copy() {
      if (held === undefined) return undefined;
      try {
        return Descriptor.copyOf(held.fd);
      } catch (caught) {
        throw LauncherError.from(caught, 'IommuFailed', 'failed to dup IOMMUFD FD: ');
      }
    },
    [Symbol.dispose]: () => {
      isOver = true;
      held?.[Symbol.dispose]();
      held = undefined;
    },
  };
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function receiveDescriptor(path: string, limitMs: number): Promise<Descriptor> {
  try {
    using client = await connect(path, limitMs);
    using message = await read(client, path, limitMs);
    const received = firstOf(message);
    acknowledge(client);
    return received;
  } catch (caught) {
    throw LauncherError.from(caught, 'IommuFailed', 'IOMMUFD socket exists but failed to receive FD: ');
  }
}

async function connect(path: string, limitMs: number): Promise<UnixClient> {
  try {
    return await UnixClient.connect(path, limitMs);
  } catch (caught) {
    const text = `failed to connect to IOMMUFD socket ${path}: dial unix ${path}: connect: ${kernelText(caught)}`;
    throw new Error(text, { cause: caught });
  }
}

async function read(client: UnixClient, path: string, limitMs: number): Promise<SocketMessage> {
  const failed = (why: string, cause?: unknown): Error =>
    new Error(`failed to read from IOMMUFD socket: read unix @->${path}: ${why}`, { cause });
  let message: SocketMessage;
  try {
    message = await client.receive({ dataBytes: DATA_BYTES, controlBytes: CONTROL_BYTES, limitMs });
  } catch (caught) {
    throw failed(isTimeout(caught) ? 'i/o timeout' : `recvmsg: ${kernelText(caught)}`, caught);
  }
  if (message.data.length > 0) return message;
  message[Symbol.dispose]();
  throw failed('EOF');
}

/** One is asked for; what else came is closed with the message. */
function firstOf({ data, descriptors, controlBytes }: SocketMessage): Descriptor {
  if (controlBytes === 0) throw new Error(`no out-of-band data received (n=${data.length})`);
  const [first] = descriptors;
  if (first === undefined) throw new Error('OOB data received but no SCM_RIGHTS found');
  return Descriptor.copyOf(first.fd);
}

/** The plugin goes away without it, too, only later. */
function acknowledge(client: UnixClient): void {
  try {
    client.send(RECEIVED);
  } catch {
    // It has gone already.
  }
}

function isTimeout(caught: unknown): boolean {
  return caught instanceof HostError && caught.code === 'MessageTimeout';
}

/** The kernel's words, which stand last. */
function kernelText(caught: unknown): string {
  return textOf(caught).replace(/^.*: /s, '');
}
