import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';

const AGENT_UNRESPONSIVE = 86;
const AGENT_COMMAND_FAILED = 38;

/** A guest whose agent may lack libvirt's command for SSH keys, so that its files have to be written. */
export interface AgentStandIn {
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'agentCommand' | 'setUserPassword' | 'setAuthorizedSshKeys'
  >;
  /** What was asked, in order; commands as their name and their arguments. */
  readonly asked: string[];
  readonly files: Map<string, string>;
  readonly passwords: Map<string, string>;
  readonly keys: Map<string, readonly string[]>;
  isOnline: boolean;
  /** Why the agent refuses to set keys or passwords; undefined when it does not. */
  refusal: string | undefined;
}

type Arguments = Readonly<Record<string, unknown>>;

const PASSWD: Readonly<Record<string, string>> = {
  root: 'root:x:0:0:root:/root:/bin/sh',
  fedora: 'fedora:x:1000:1000::/home/fedora:/bin/sh',
};

function fail(text: string): never {
  throw new LibvirtCallError(AGENT_COMMAND_FAILED, 10, text);
}

/** The agent's commands by name, on files and users that it keeps in memory. */
function commandsOn(files: Map<string, string>): Readonly<Record<string, (args: Arguments) => unknown>> {
  const open = new Map<number, string>();
  const outputs = new Map<number, { readonly code: number; readonly text: string }>();
  let lastNumber = 100;
  return {
    'guest-ping': () => ({}),
    'guest-exec'({ path, arg }) {
      const args = arg as readonly string[];
      const entry = path === 'getent' ? PASSWD[args[1] ?? ''] : '';
      outputs.set(++lastNumber, { code: entry === undefined ? 2 : 0, text: entry ?? '' });
      return { pid: lastNumber };
    },
    'guest-exec-status'({ pid }) {
      const { code, text } = outputs.get(Number(pid)) ?? fail('no such pid');
      return { exited: true, exitcode: code, 'out-data': Buffer.from(text).toString('base64') };
    },
    'guest-file-open'({ path, mode }) {
      const name = String(path);
      if (mode === 'r' && !files.has(name)) fail(`failed to open file '${name}': No such file or directory`);
      if (mode === 'w') files.set(name, '');
      open.set(++lastNumber, name);
      return lastNumber;
    },
    'guest-file-read'({ handle }) {
      const text = files.get(open.get(Number(handle)) ?? '') ?? '';
      return { count: text.length, 'buf-b64': Buffer.from(text).toString('base64'), eof: true };
    },
    'guest-file-write'({ handle, 'buf-b64': data }) {
      // As a pipe that takes a few bytes at a time.
      const some = Buffer.from(String(data), 'base64').subarray(0, 7);
      const name = open.get(Number(handle)) ?? '';
      files.set(name, `${files.get(name) ?? ''}${some.toString('latin1')}`);
      return { count: some.length };
    },
    'guest-file-close'({ handle }) {
      open.delete(Number(handle));
      return {};
    },
  };
}

/** Creates a guest with the users root and fedora. */
export function createAgentStandIn(): AgentStandIn {
  const files = new Map<string, string>();
  const commands = commandsOn(files);
  const guest: AgentStandIn = {
    asked: [],
    files,
    passwords: new Map(),
    keys: new Map(),
    isOnline: true,
    refusal: undefined,
    libvirt: {
      lookupDomainByName: (name): Promise<DomainRef> => Promise.resolve({ name, uuid: '1', id: 1 }),
      async agentCommand(_domain, command) {
        await Promise.resolve();
        const { execute, arguments: args = {} } = JSON.parse(command) as { execute: string; arguments?: Arguments };
        const { path, arg } = args as { readonly path?: string; readonly arg?: readonly string[] };
        guest.asked.push([execute, ...(path === undefined ? [] : [path]), ...(arg ?? [])].join(' '));
        if (!guest.isOnline) {
          throw new LibvirtCallError(AGENT_UNRESPONSIVE, 10, 'Guest agent is not responding');
        }
        const run = commands[execute] ?? fail(`The command ${execute} has not been found`);
        return JSON.stringify({ return: run(args) });
      },
      async setUserPassword(_domain, user, password) {
        await Promise.resolve();
        guest.asked.push(`password of ${user}`);
        if (guest.refusal !== undefined) fail(guest.refusal);
        guest.passwords.set(user, password);
      },
      async setAuthorizedSshKeys(_domain, user, keys) {
        await Promise.resolve();
        guest.asked.push(`keys of ${user}`);
        if (guest.refusal !== undefined) fail(guest.refusal);
        guest.keys.set(user, keys);
      },
    },
  };
  return guest;
}
