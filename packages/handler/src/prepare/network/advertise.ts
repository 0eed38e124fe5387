import type { Socket } from 'node:dgram';
import { ICMP6_PORT, openBoundIcmp6 } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { ND_TYPE, renderRouterAdvertisement } from './router-advertisement.ts';
import type { RouterFacts } from './router-advertisement.ts';

const ALL_NODES = 'ff02::1';
/** RFC 4861 §6.2.1: defaults of AdvDefaultLifetime, MinRtrAdvInterval and MaxRtrAdvInterval. */
const LIFETIME_SECONDS = 1800;
const INTERVAL_MS = { least: 200_000, most: 600_000 } as const;
/** RFC 4861 §10: a router that is new says so three times in short order. */
const FIRST = { count: 3, intervalMs: 16_000 } as const;
/** However fast a guest asks, it is answered this often. */
const ANSWER_GAP_MS = 200;

/** A gateway that tells of itself until it is closed. */
export type Advertiser = Disposable;

/**
 * Sends router advertisements on a bridge of the calling thread's network namespace: unasked ones as RFC 4861 §6.2.4
 * has them, and one to all for each solicitation, at most five a second. Packets that cannot be sent are left out: the
 * guest asks again.
 */
export function advertiseRouter(bridge: string, facts: Omit<RouterFacts, 'lifetimeSeconds'>, log: Logger): Advertiser {
  const packet = renderRouterAdvertisement({ ...facts, lifetimeSeconds: LIFETIME_SECONDS });
  const socket = openBoundIcmp6({ device: bridge, receives: [ND_TYPE.routerSolicitation] });
  const send = (): void => {
    socket.send(packet, ICMP6_PORT, ALL_NODES, (error) => {
      if (error !== null) log.debug({ reason: error }, 'a router advertisement was not sent');
    });
  };
  const stop = [sendUnasked(send), answerSolicitations(socket, send)];
  socket.on('error', (error) => log.debug({ reason: error }, 'ICMPv6 socket of a guest network'));
  socket.unref();
  return {
    [Symbol.dispose]() {
      for (const each of stop) each();
      socket.close();
    },
  };
}

function sendUnasked(send: () => void): () => void {
  let sent = 0;
  let timer: NodeJS.Timeout;
  const next = (): void => {
    send();
    sent += 1;
    const { least, most } = INTERVAL_MS;
    const wait = sent < FIRST.count ? FIRST.intervalMs : least + Math.random() * (most - least);
    timer = setTimeout(next, wait).unref();
  };
  next();
  return () => clearTimeout(timer);
}

function answerSolicitations(socket: Socket, send: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isOwed = false;
  const answer = (): void => {
    isOwed = false;
    send();
    timer = setTimeout(() => {
      timer = undefined;
      if (isOwed) answer();
    }, ANSWER_GAP_MS).unref();
  };
  socket.on('message', () => {
    if (timer === undefined) answer();
    else isOwed = true;
  });
  return () => clearTimeout(timer);
}
