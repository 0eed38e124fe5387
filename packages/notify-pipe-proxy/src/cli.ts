import { parseArgs } from 'node:util';

import { PIPE_DIRECTORY, PIPE_SOCKET_NAME } from './pipe.ts';

/** What the command line asks for. */
export interface CliOptions {
  readonly podPid: number;
  readonly target: string;
  readonly directory: string;
  readonly socketName: string;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
  readonly verbosity: number;
}

/** A command line taken apart: options, a wish for help, or what is wrong with it. */
export type CliResult =
  | { readonly kind: 'run'; readonly options: CliOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage'; readonly message: string };

/** Exit codes of the binary; the help text explains them. */
export const EXIT = { stopped: 0, failed: 1, usage: 2, podGone: 3 } as const;

export const HELP = `Usage: notify-pipe-proxy --pod-pid PID --target SOCKET [options]

Puts the notify pipe into a launcher's pod and copies every connection to the handler's notify socket.

  --pod-pid PID          a process in the pod's mount namespace (required)
  --target SOCKET        unix socket of the notify server, dialled for each connection (required)
  --directory DIR        directory of the pipe as the pod sees it (default ${PIPE_DIRECTORY})
  --socket-name NAME     name of the pipe (default ${PIPE_SOCKET_NAME})
  --owner UID:GID        owner of the pipe, such as 107:107 for a launcher that is not root
  --verbosity N          2 logs connections, 3 also their ends (default 2)
  --help                 this text

Example:
  notify-pipe-proxy --pod-pid 4711 --target /var/run/kubevirt/domain-notify.sock --owner 107:107

Exit codes: ${EXIT.stopped} stopped by SIGTERM or SIGINT, ${EXIT.failed} the pipe could not be made, ${EXIT.usage} wrong use, ${EXIT.podGone} the pod's process ended.
`;

const OPTIONS = {
  'pod-pid': { type: 'string' },
  target: { type: 'string' },
  directory: { type: 'string', default: PIPE_DIRECTORY },
  'socket-name': { type: 'string', default: PIPE_SOCKET_NAME },
  owner: { type: 'string' },
  verbosity: { type: 'string', default: '2' },
  help: { type: 'boolean', default: false },
} as const;

/** Takes the command line apart. */
export function parseCli(args: readonly string[]): CliResult {
  try {
    const { values } = parseArgs({ args: [...args], options: OPTIONS, strict: true, allowPositionals: false });
    if (values.help) return { kind: 'help' };
    if (values.target === undefined) return usage('--target is missing');
    const podPid = parseNumber(values['pod-pid'], '--pod-pid');
    if (podPid === 0) return usage('--pod-pid has to be at least 1');
    const options: CliOptions = {
      podPid,
      target: values.target,
      directory: values.directory,
      socketName: values['socket-name'],
      owner: parseOwner(values.owner),
      verbosity: parseNumber(values.verbosity, '--verbosity'),
    };
    return options.directory.startsWith('/') ? { kind: 'run', options } : usage('--directory has to be absolute');
  } catch (caught) {
    return usage(caught instanceof Error ? caught.message : String(caught));
  }
}

function usage(message: string): CliResult {
  return { kind: 'usage', message: `${message}; see notify-pipe-proxy --help` };
}

function parseOwner(text: string | undefined): CliOptions['owner'] {
  if (text === undefined) return undefined;
  const [uid, gid, ...rest] = text.split(':');
  if (rest.length > 0) throw new Error('--owner has to be UID:GID');
  return { uid: parseNumber(uid, 'the user of --owner'), gid: parseNumber(gid, 'the group of --owner') };
}

function parseNumber(text: string | undefined, what: string): number {
  if (text === undefined) throw new Error(`${what} is missing`);
  if (!/^[0-9]{1,9}$/.test(text)) throw new Error(`${what} has to be a number, not ${JSON.stringify(text)}`);
  return Number(text);
}
