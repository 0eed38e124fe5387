import type { Socket } from 'node:net';

/** How long the other direction may go on when one side has said all it has to say. */
const LINGER_MS = 1_000;

/**
 * Copies bytes both ways until a side ends, then closes both. What a side has sent before its end still arrives, as
 * long as the other one reads it within a second; a slow reader slows its sender down.
 *
 * Both sockets have to allow half-open connections.
 *
 * @returns resolves when both sockets are closed.
 * @source KubeVirt v1.9.0 pkg/virt-handler/notify-server/pipe/pipe.go
 */
export function splice(one: Socket, other: Socket): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const closeSoon = (): void => {
    timer ??= setTimeout(() => {
      one.destroy();
      other.destroy();
    }, LINGER_MS);
  };
  const closed = [forward(one, other, closeSoon), forward(other, one, closeSoon)];
  return Promise.all(closed).then(() => clearTimeout(timer));
}

/** Copies one direction; resolves when the source is closed. */
function forward(source: Socket, target: Socket, onEnd: () => void): Promise<void> {
  source.pipe(target);
  source.on('error', () => source.destroy());
  source.once('end', onEnd);
  return new Promise((resolve) => {
    source.once('close', () => {
      // After a fault nobody has ended the target yet; what it was given is still flushed.
      if (!target.destroyed) target.end();
      onEnd();
      resolve();
    });
  });
}
