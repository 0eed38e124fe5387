import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { ReadStream } from 'node:tty';
import { PidHandle } from '@virtwire/host';
import { errorText, VirtwireError } from '../errors.ts';
import type { SandboxRecord } from '../state/sandbox-records.ts';
import type { Output } from './output.ts';

/** Ctrl-]: leaves the console. */
const ESCAPE = 0x1d;

/** The input that a console reads. */
export type ConsoleInput = Pick<ReadStream, 'on' | 'off' | 'resume' | 'pause'> &
  Partial<Pick<ReadStream, 'setRawMode' | 'isTTY'>>;

/** Connects to the guest's serial console, without following links that the pod could place. */
export async function connectSerial(record: SandboxRecord): Promise<Socket> {
  using launcher = PidHandle.open(record.pid);
  using root = launcher.root();
  try {
    using directory = root.join('run', 'kubevirt-private', record.vmiUid);
    const socket = connect(directory.childPath('virt-serial0'));
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return socket;
  } catch (caught) {
    const who = `${record.namespace}/${record.name}`;
    throw VirtwireError.from(caught, 'NoLauncher', `no serial console of ${who}: is the VM running?`);
  }
}

/**
 * Joins the terminal to the guest's serial console until the guest ends, Ctrl-] is typed, or the signal aborts.
 *
 * @returns what ended it.
 */
export async function attachConsole(
  socket: Socket,
  input: ConsoleInput,
  output: Output,
  signal?: AbortSignal,
): Promise<'left' | 'closed' | 'aborted'> {
  const isTerminal = input.isTTY === true;
  if (isTerminal) input.setRawMode?.(true);
  let onInput: ((chunk: Buffer) => void) | undefined;
  try {
    return await new Promise((resolve, reject) => {
      onInput = (chunk) => {
        const escape = isTerminal ? chunk.indexOf(ESCAPE) : -1;
        socket.write(escape < 0 ? chunk : chunk.subarray(0, escape));
        if (escape >= 0) resolve('left');
      };
      // A guest that says more than the terminal can show has to wait: nothing is piled up here.
      socket.on('data', (chunk) => {
        socket.pause();
        void output.raw(Buffer.from(chunk)).then(() => socket.resume());
      });
      socket.once('close', () => resolve('closed'));
      socket.once('error', (error) =>
        reject(new VirtwireError('NoLauncher', `the console broke: ${errorText(error)}`)),
      );
      signal?.addEventListener('abort', () => resolve('aborted'), { once: true });
      if (signal?.aborted === true) resolve('aborted');
      input.on('data', onInput);
      input.resume();
    });
  } finally {
    if (onInput !== undefined) input.off('data', onInput);
    input.pause();
    if (isTerminal) input.setRawMode?.(false);
    socket.destroy();
  }
}
