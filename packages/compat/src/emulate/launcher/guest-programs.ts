import type { LauncherFacts } from '../facts/line-facts.ts';
import type { Fields } from '../schema/release-schema.ts';
import { GRPC } from '../transport/grpc-frames.ts';
import { ProcessCrash, StatusFailure } from './outcome.ts';
import type { Vm } from './vm.ts';

/** A program's end: its exit code and what it printed; a number of seconds for one that takes its time. */
type Program = (args: readonly string[]) => { readonly exitCode: number; readonly stdOut: string } | number;

/** The programs of the emulated guest. */
const PROGRAMS: Readonly<Record<string, Program>> = {
  true: () => ({ exitCode: 0, stdOut: '' }),
  false: () => ({ exitCode: 1, stdOut: '' }),
  echo: (args) => ({ exitCode: 0, stdOut: `${args.join(' ')}\n` }),
  sleep: ([seconds]) => Number(seconds ?? 0),
};

const PID = 4_711;

/** @throws {StatusFailure} libvirt's error for a domain that the launcher does not hold. */
export function requireNamedDomain(vm: Vm, name: unknown): void {
  if (vm.domain !== undefined && name === vm.name) return;
  const text = `Domain not found: no domain with matching name '${typeof name === 'string' ? name : ''}'`;
  throw new StatusFailure(GRPC.unknown, `virError(Code=42, Domain=10, Message='${text}')`);
}

/** @throws {StatusFailure} libvirt's error without an agent. */
export function requireAgent(vm: Vm): void {
  if (vm.isAgentConnected) return;
  const text = 'Guest agent is not responding: QEMU guest agent is not connected';
  throw new StatusFailure(GRPC.unknown, `virError(Code=86, Domain=10, Message='${text}')`);
}

/**
 * Runs a program in the guest: a command that ran succeeds with its exit code, also one other than 0; one that is not
 * there is the agent's error, and one that takes longer than the request allows is given up.
 *
 * @source wire.md 6 Exec, 11
 */
export function execInGuest(vm: Vm, facts: LauncherFacts, request: Fields): Fields {
  requireNamedDomain(vm, request['domainName']);
  requireAgent(vm);
  const timeout = Number(request['timeoutSeconds'] ?? 0);
  if (!(timeout > 0) && facts.crashesOnExecTimeoutZero.value) throw new ProcessCrash('Exec with a timeout below 1');
  const command = typeof request['Command'] === 'string' ? request['Command'] : '';
  const name = command.slice(command.lastIndexOf('/') + 1);
  const program = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
  if (program === undefined) {
    const reason = `Guest agent command failed, error was 'Failed to execute child process “${command}” (No such file or directory)'`;
    const text = `internal error: unable to execute QEMU agent command 'guest-exec': ${reason}`;
    throw new StatusFailure(GRPC.unknown, `virError(Code=1, Domain=10, Message='${text}')`);
  }
  const end = program((request['Args'] ?? []) as readonly string[]);
  if (typeof end !== 'number') return end;
  if (end <= timeout) return { exitCode: 0, stdOut: '' };
  const text = `Timed out waiting for guest pid [${PID}] for command [${command}] to exit`;
  throw new StatusFailure(GRPC.unknown, text);
}
