import { ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import { daemonError } from './errors.ts';

/** A command for the guest agent. */
export interface AgentCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** Answers one command with the value of its `return` member; throws `AgentError` for an error answer. */
export type AgentHandler = (command: AgentCommand) => unknown;

/** An error that the agent answers. */
export class AgentError extends Error {
  override readonly name = 'AgentError';
}

/** What a guest is and does. */
export interface GuestBehaviour {
  /** Whether the guest powers off when it is asked to. Default `powerOff`. */
  readonly onShutdown?: 'powerOff' | 'ignore';
  /** Time from the request to the guest's own shutdown. Default 0. */
  readonly shutdownDelayMs?: number;
  /** Whether the guest lets go of devices. Default `release`. */
  readonly onDetach?: 'release' | 'keep';
  /** Whether an agent answers soon after the start. Default false. */
  readonly hasAgent?: boolean;
  /** Time from the start to the agent's connection. Default 0. */
  readonly agentDelayMs?: number;
  /** Time that a migration or backup takes; `untilLever` waits for `job.complete()` or an abort. Default 0. */
  readonly jobDurationMs?: number | 'untilLever';
  /** Answers of the agent by command, over those of the default agent. */
  readonly agent?: Readonly<Record<string, AgentHandler>>;
}

/** Answers of an agent in a small Linux guest, in the form of qemu-guest-agent 7.2. */
const DEFAULT_AGENT: Readonly<Record<string, AgentHandler>> = {
  'guest-ping': () => ({}),
  'guest-sync': (command) => command.arguments?.['id'],
  'guest-get-host-name': () => ({ 'host-name': 'guest' }),
  'guest-get-timezone': () => ({ zone: 'UTC', offset: 0 }),
  'guest-get-users': () => [],
  'guest-get-osinfo': () => ({
    id: 'debian',
    name: 'Debian GNU/Linux',
    'pretty-name': 'Debian GNU/Linux 12 (bookworm)',
    version: '12 (bookworm)',
    'version-id': '12',
    machine: 'x86_64',
    'kernel-release': '6.1.0-28-cloud-amd64',
    'kernel-version': '#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1',
  }),
  'guest-network-get-interfaces': () => [
    {
      name: 'lo',
      'hardware-address': '00:00:00:00:00:00',
      'ip-addresses': [{ 'ip-address': '127.0.0.1', 'ip-address-type': 'ipv4', prefix: 8 }],
    },
  ],
  'guest-get-fsinfo': () => [],
  'guest-get-disks': () => [],
  'guest-fsfreeze-status': () => 'thawed',
  'guest-fsfreeze-freeze': () => 1,
  'guest-fsfreeze-thaw': () => 1,
  'guest-set-user-password': () => ({}),
  'guest-set-time': () => ({}),
  'guest-ssh-get-authorized-keys': () => ({ keys: [] }),
  'guest-ssh-add-authorized-keys': () => ({}),
  'guest-ssh-remove-authorized-keys': () => ({}),
  'guest-exec': () => ({ pid: 1 }),
  'guest-exec-status': () => ({ exited: true, exitcode: 0 }),
};

/**
 * Asks the agent of a guest.
 *
 * @throws {LibvirtError} as the daemon up to 11.1 when the agent answers with an error.
 */
export function askAgent(behaviour: GuestBehaviour, command: AgentCommand): unknown {
  const handlers: Readonly<Record<string, AgentHandler>> = { ...DEFAULT_AGENT, ...behaviour.agent };
  const handler = handlers[command.execute];
  const fail = (text: string): never => {
    const message = `internal error: unable to execute QEMU agent command '${command.execute}': ${text}`;
    throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.QEMU, message);
  };
  if (handler === undefined)
    return command.execute === 'guest-info'
      ? agentInfo(handlers)
      : fail(`The command ${command.execute} has not been found`);
  try {
    return handler(command);
  } catch (error) {
    if (error instanceof AgentError) return fail(error.message);
    throw error;
  }
}

function agentInfo(handlers: Readonly<Record<string, AgentHandler>>): unknown {
  const names = [...Object.keys(handlers), 'guest-info', 'guest-shutdown'];
  const commands = names.map((name) => ({ name, enabled: true, 'success-response': true }));
  return { version: '7.2.22', supported_commands: commands };
}
