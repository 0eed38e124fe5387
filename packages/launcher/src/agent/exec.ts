import { parseJson } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { decodeBase64 } from '../disks/base64.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { LauncherError } from '../errors.ts';

/** What running a command in the guest needs. */
export interface GuestExecDeps {
  /** The connection for calls that wait for the guest. */
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'agentCommand'>;
  readonly clock: Clock;
}

/** A command for the guest. */
export interface GuestCommand {
  readonly path: string;
  readonly args: readonly string[];
  readonly timeoutSeconds: number;
}

/** How a command ended. `output` is what it wrote to its standard output. */
export interface GuestCommandResult {
  readonly exitCode: number;
  readonly output: string;
}

/** How often the guest is asked, over the whole timeout, whether the command has ended. */
const POLLS = 10;

type Fields = Readonly<Record<string, unknown>>;

function returned(reply: string): Fields {
  const fields = (parseJson(reply) as { readonly return?: unknown } | null)?.return;
  return typeof fields === 'object' && fields !== null ? (fields as Fields) : {};
}

async function start({ libvirt }: GuestExecDeps, domain: DomainRef, { path, args }: GuestCommand): Promise<number> {
  const list = args.map((arg) => JSON.stringify(arg)).join(', ');
  const command = `{ "path": ${JSON.stringify(path)}, "arg": [ ${list} ], "capture-output":true }`;
  const reply = await libvirt.agentCommand(domain, `{"execute": "guest-exec", "arguments": ${command} }`);
  const pid = Number(returned(reply)['pid'] ?? 0);
  if (pid > 0) return pid;
  const text = `Invalid pid [${pid}] returned from qemu agent during access credential injection: ${reply}`;
  throw new LauncherError('GuestCommandFailed', text);
}

function resultOf(status: Fields): GuestCommandResult {
  const { exitcode, 'out-data': output } = status;
  return { exitCode: Number(exitcode ?? 0), output: typeof output === 'string' ? decodeBase64(output) : '' };
}

/**
 * Runs a command in the guest and waits for its end.
 *
 * @throws {LauncherError} `GuestCommandFailed` when it does not end in time; the agent's failure as it is.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent/guest_exec.go
 */
export async function execInGuest(
  deps: GuestExecDeps,
  domainName: string,
  command: GuestCommand,
): Promise<GuestCommandResult> {
  const { libvirt, clock } = deps;
  const timeoutMs = command.timeoutSeconds * 1_000;
  if (timeoutMs <= 0) throw new LauncherError('BadRequest', 'timeoutSeconds must be at least 1');
  const domain = await libvirt.lookupDomainByName(domainName);
  const pid = await start(deps, domain, command);
  const ask = `{"execute": "guest-exec-status", "arguments": { "pid": ${pid} } }`;
  const giveUpAtMs = clock.now() + timeoutMs;
  for (;;) {
    const status = returned(await libvirt.agentCommand(domain, ask));
    if (status['exited'] === true) return resultOf(status);
    if (clock.now() >= giveUpAtMs) break;
    await clock.sleep(timeoutMs / POLLS);
  }
  const text = `Timed out waiting for guest pid [${pid}] for command [${command.path}] to exit`;
  throw new LauncherError('GuestCommandFailed', text);
}
