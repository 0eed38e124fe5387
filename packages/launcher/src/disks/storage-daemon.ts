import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const DAEMON = 'qemu-storage-daemon';
const TIMEOUT_MS = 30_000;
const JOB = 'create';

/** An overlay that tracks changes of an image whose data stays where it is. */
export interface TrackingOverlay {
  /** An empty file, which becomes the overlay. */
  readonly overlay: string;
  readonly image: string;
  readonly isBlockDevice: boolean;
  readonly bytes: number;
}

/** A line that QMP sends: a greeting, an answer or an event. */
interface QmpMessage {
  readonly QMP?: unknown;
  readonly return?: unknown;
  /** That of the command that is answered. */
  readonly id?: string;
  readonly error?: { readonly desc?: string };
  readonly event?: string;
  readonly data?: { readonly id?: string; readonly status?: string };
}

interface QmpJob {
  readonly id?: string;
  readonly error?: string;
}

/**
 * Makes an overlay by a storage daemon of its own. `qemu-img` cannot: it would make the data file anew.
 *
 * @throws {Error} when the daemon cannot be started, refuses, or takes longer than half a minute.
 * @source KubeVirt v1.9.0 pkg/storage/cbt/cbt.go
 */
export async function createTrackingOverlay(request: TrackingOverlay): Promise<void> {
  const { overlay, image, isBlockDevice } = request;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const args = [
    ...['--chardev', 'stdio,id=stdio', '--monitor', 'stdio'],
    ...['--blockdev', `file,node-name=file,filename=${escapeOption(overlay)}`],
    ...['--blockdev', `${isBlockDevice ? 'host_device' : 'file'},node-name=data-file,filename=${escapeOption(image)}`],
  ];
  const child = spawn(DAEMON, args, { stdio: ['pipe', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
  const words: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => void words.push(text));
  // A daemon that ended says why on stderr.
  child.stdin.on('error', () => undefined);
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // Waited for below, after the talk that its failure ends.
  ended.catch(() => undefined);
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await talk(lines, (command) => void child.stdin.write(`${JSON.stringify(command)}\n`), request.bytes);
    child.stdin.end();
    await ended;
  } catch (error) {
    child.kill('SIGKILL');
    await ended.catch((cause: unknown) => {
      throw signal.aborted ? new Error(`${DAEMON} took longer than ${String(TIMEOUT_MS / 1000)} s`) : cause;
    });
    const said = words.join('').trim();
    throw said === '' ? error : new Error(said, { cause: error });
  }
}

async function talk(lines: AsyncIterator<string>, send: (command: object) => void, bytes: number): Promise<void> {
  const next = async (isWanted: (message: QmpMessage) => boolean): Promise<QmpMessage> => {
    for (;;) {
      const line = await lines.next();
      if (line.done === true) throw new Error(`${DAEMON} ended too soon`);
      const message = JSON.parse(line.value) as QmpMessage;
      if (message.error !== undefined) throw new Error(message.error.desc ?? 'QMP error');
      if (isWanted(message)) return message;
    }
  };
  const execute = async (command: string, args: object = {}): Promise<unknown> => {
    send({ execute: command, arguments: args, id: command });
    return (await next(({ id }) => id === command)).return;
  };
  await next((message) => message.QMP !== undefined);
  await execute('qmp_capabilities');
  const options = { driver: 'qcow2', file: 'file', 'data-file': 'data-file', 'data-file-raw': true, size: bytes };
  // Not by `execute`: the job may be over before the command that starts it is answered.
  send({ execute: 'blockdev-create', arguments: { 'job-id': JOB, options } });
  await next(({ event, data }) => event === 'JOB_STATUS_CHANGE' && data?.id === JOB && data.status === 'concluded');
  const jobs = (await execute('query-jobs')) as readonly QmpJob[];
  const fault = jobs.find(({ id }) => id === JOB)?.error;
  await execute('job-dismiss', { id: JOB });
  if (fault !== undefined) throw new Error(fault);
  await execute('quit');
}

/** A comma parts options, so one that belongs to a value is doubled. */
function escapeOption(value: string): string {
  return value.replaceAll(',', ',,');
}
