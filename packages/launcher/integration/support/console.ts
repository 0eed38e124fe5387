import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { LauncherPod } from './sandbox.ts';
import { eventually } from './sandbox.ts';

/** The serial console of a guest: a shell of its root. */
export interface GuestConsole extends Disposable {
  /** Types a line and waits for an answer that matches, among what is printed from then on. */
  type(line: string, answer: RegExp, limitMs?: number): Promise<string>;
}

/** Opens the console of the guest in a pod. */
export async function openConsole(pod: LauncherPod, uid: string): Promise<GuestConsole> {
  const socket: Socket = connect(join(pod.root, 'kubevirt-private', uid, 'virt-serial0'));
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return {
    async type(line, answer, limitMs) {
      const from = text.length;
      socket.write(`${line}\n`);
      const look = (): string | undefined => {
        // Without the echo of what was typed, and the shell's question where its cursor is.
        const seen = text.slice(from).replace(line, '').replaceAll('\u001b[6n', '');
        return answer.test(seen) ? seen : undefined;
      };
      return eventually(`answer ${String(answer)} to "${line}"`, look, limitMs);
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
