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
/** Types of a reply's fields, as Go names them. */
type FieldTypes = Readonly<Record<string, 'int' | 'bool' | 'string'>>;

const START_FIELDS: FieldTypes = { pid: 'int' };
const STATUS_FIELDS: FieldTypes = { exited: 'bool', exitcode: 'int', 'out-data': 'string' };

/** @throws {LauncherError} `GuestCommandFailed` in Go's words for a reply of another shape. */
function returned(reply: string, struct: string, types: FieldTypes): Fields {
  const whole = objectOf(parseJson(reply), `value of type agent.${struct}`);
  const fields = objectOf(whole['return'], `struct field ${struct}.return of type agent.${struct}Data`);
  for (const [name, type] of Object.entries(types)) {
    const value = fields[name] ?? undefined;
    if (value !== undefined && !isOfType(value, type)) {
      throw misshapen(value, `struct field ${struct}Data.return.${name} of type ${type}`, type === 'int');
    }
  }
  return fields;
}

function objectOf(value: unknown, place: string): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw misshapen(value, place, false);
  return value as Fields;
}

function isOfType(value: unknown, type: 'int' | 'bool' | 'string'): boolean {
  return type === 'int' ? Number.isSafeInteger(value) : typeof value === (type === 'bool' ? 'boolean' : type);
}

function misshapen(value: unknown, place: string, isNumberShown: boolean): LauncherError {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const kind = isNumber
    ? 'number'
    : typeof value === 'boolean'
      ? 'bool'
      : Array.isArray(value)
        ? 'array'
        : typeof value;
  const shown = isNumber && isNumberShown ? ` ${String(value)}` : '';
  return new LauncherError('GuestCommandFailed', `json: cannot unmarshal ${kind}${shown} into Go ${place}`);
}

async function start({ libvirt }: GuestExecDeps, domain: DomainRef, { path, args }: GuestCommand): Promise<number> {
  const list = args.map((arg) => JSON.stringify(arg)).join(', ');
  const command = `{ "path": ${JSON.stringify(path)}, "arg": [ ${list} ], "capture-output":true }`;
  const reply = await libvirt.agentCommand(domain, `{"execute": "guest-exec", "arguments": ${command} }`);
  const pid = Number(returned(reply, 'execReturn', START_FIELDS)['pid'] ?? 0);
  if (pid > 0) return pid;
  const text = `Invalid pid [${pid}] returned from qemu agent during access credential injection: ${reply}`;
  throw new LauncherError('GuestCommandFailed', text);
}

function resultOf(status: Fields): GuestCommandResult {
  const { exitcode, 'out-data': output } = status;
  return {
    exitCode: Number(exitcode ?? 0),
    output: typeof output === 'string' ? decodeBase64(output).toString('utf8') : '',
  };
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
    const status = returned(await libvirt.agentCommand(domain, ask), 'execStatusReturn', STATUS_FIELDS);
    if (status['exited'] === true) return resultOf(status);
    if (clock.now() >= giveUpAtMs) break;
    await clock.sleep(timeoutMs / POLLS);
  }
  const text = `Timed out waiting for guest pid [${pid}] for command [${command.path}] to exit`;
  throw new LauncherError('GuestCommandFailed', text);
}
