import type { Duplex } from 'node:stream';
import { Channel } from './channel.ts';
import type { ChannelConfig, ChannelEvents } from './channel.ts';
import { LibvirtError } from './errors.ts';
import { ConnectFlags, DriverFeature } from './gen/constants.gen.ts';
import type { AuthListRet, ConnectSupportsFeatureRet } from './gen/types.gen.ts';
import { duplexTransport, openUnixSocket } from './socket.ts';
import type { Transport } from './socket.ts';
import { chooseSocket } from './uri.ts';
import type { Target } from './uri.ts';
import type { ConnectOptions } from './options.ts';

const AUTH_NONE = 0;
const AUTH_POLKIT = 2;

/** What one opening needs. */
export interface Opening {
  readonly target: Target;
  readonly options: ConnectOptions;
  readonly openTimeoutMs: number;
  readonly config: ChannelConfig;
  readonly events: ChannelEvents;
  readonly signal: AbortSignal;
}

/**
 * Connects, authenticates and opens the hypervisor connection, all within `openTimeoutMs`: a daemon that is still
 * starting accepts connections and does not answer.
 *
 * @throws {LibvirtError} `ConnectFailed`, `AuthFailed`, `Aborted`, or what the daemon answered.
 */
export async function openChannel(opening: Opening): Promise<Channel> {
  const { openTimeoutMs, signal, target } = opening;
  const limit = new AbortController();
  const onAbort = (): void => limit.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const where = opening.options.openTransport === undefined ? chooseSocket(target) : 'the given transport';
  const timer = setTimeout(() => {
    const who = opening.options.openTransport === undefined ? `the daemon at ${where}` : where;
    const text = `${who} did not finish opening ${target.driverUri} within ${String(openTimeoutMs)} ms`;
    limit.abort(LibvirtError.client('ConnectFailed', text));
  }, openTimeoutMs);
  try {
    signal.throwIfAborted();
    return await openWithin(opening, where, limit.signal);
  } catch (error) {
    throw openError(error, signal, limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

async function openWithin(opening: Opening, where: string, signal: AbortSignal): Promise<Channel> {
  const { openTransport } = opening.options;
  const transport: Transport =
    openTransport === undefined
      ? await openUnixSocket(where, signal)
      : duplexTransport(await untilAborted(openTransport, signal));
  const channel = new Channel(transport, opening.config, opening.events);
  const onAbort = (): void => channel.end(LibvirtError.client('ConnectFailed', 'opening given up'));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await shakeHands(channel, opening);
    return channel;
  } catch (error) {
    channel.end(LibvirtError.client('ConnectFailed', 'opening failed', { cause: error }));
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Does not wait for a stream longer than the signal says; one that comes later is destroyed. */
function untilAborted(open: () => Duplex | Promise<Duplex>, signal: AbortSignal): Promise<Duplex> {
  const given = new Promise<Duplex>((resolve) => resolve(open())).catch((error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    throw LibvirtError.client('ConnectFailed', `open a transport: ${text}`, { cause: error });
  });
  const aborted = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void => {
      reject(LibvirtError.client('ConnectFailed', 'opening given up'));
      given.then((stream) => stream.destroy()).catch(() => undefined);
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
  });
  // Whoever aborts later, after the stream is there, ends the channel, and this promise with it.
  aborted.catch(() => undefined);
  return Promise.race([given, aborted]);
}

/** @source libvirt remote_driver.c doRemoteOpen: same calls in the same order */
async function shakeHands(channel: Channel, { target, options }: Opening): Promise<void> {
  const unlimited = { timeoutMs: 0 };
  const call = (procedure: string, args?: unknown): Promise<unknown> =>
    channel.call({ procedure, args, options: unlimited });
  const supports = async (feature: number): Promise<boolean> =>
    ((await call('CONNECT_SUPPORTS_FEATURE', { feature })) as ConnectSupportsFeatureRet).supported !== 0;

  const { types } = (await call('AUTH_LIST')) as AuthListRet;
  if (types.includes(AUTH_POLKIT)) await call('AUTH_POLKIT');
  else if (types.length > 0 && !types.includes(AUTH_NONE)) {
    throw LibvirtError.client('AuthFailed', `the daemon wants authentication of type ${types.join(', ')} (1 is SASL)`);
  }
  // Asking is what makes the daemon send pings of its own.
  await supports(DriverFeature.PROGRAM_KEEPALIVE);
  await call('CONNECT_OPEN', { name: target.driverUri, flags: options.readOnly === true ? ConnectFlags.RO : 0 });
  if (!(await supports(DriverFeature.REMOTE_EVENT_CALLBACK))) {
    throw LibvirtError.client('Unsupported', 'the daemon is too old: it has no event callbacks');
  }
  if (await supports(DriverFeature.REMOTE_CLOSE_CALLBACK)) await call('CONNECT_REGISTER_CLOSE_CALLBACK');
}

function openError(error: unknown, outer: AbortSignal, limit: AbortSignal): LibvirtError {
  if (outer.aborted)
    return LibvirtError.client('Aborted', 'opening the connection was aborted', { cause: outer.reason });
  if (limit.aborted && limit.reason instanceof LibvirtError) return limit.reason;
  if (error instanceof LibvirtError) {
    if (error.kind !== 'ConnectionLost') return error;
    return LibvirtError.client('ConnectFailed', `the daemon closed the connection: ${error.message}`, { cause: error });
  }
  throw error;
}
