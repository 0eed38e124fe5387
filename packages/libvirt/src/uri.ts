import { accessSync } from 'node:fs';
import { join } from 'node:path';
import { LibvirtError } from './errors.ts';
import type { ConnectOptions } from './options.ts';

/** Where to connect, and which driver name to open there. */
export interface Target {
  /** Candidates in the order of preference; the first that exists is taken. */
  readonly socketPaths: readonly string[];
  /** Name for CONNECT_OPEN: the URI without transport and query, or the daemon would connect to itself. */
  readonly driverUri: string;
}

const DEFAULT_URI = 'qemu:///system';

/**
 * Resolves the options to sockets and a driver name, as the C library does: the modular daemon's socket before
 * libvirtd's.
 *
 * @throws {LibvirtError} `InvalidArgument` for a URI that is no unix-socket URI.
 */
export function resolveTarget(
  options: Pick<ConnectOptions, 'uri' | 'socketPath' | 'readOnly'>,
  environment: Readonly<Record<string, string | undefined>>,
): Target {
  const fromEnvironment = environment['LIBVIRT_DEFAULT_URI'] ?? '';
  const text = options.uri ?? (fromEnvironment === '' ? DEFAULT_URI : fromEnvironment);
  const uri = URL.parse(text);
  const [, driver = '', transport] = /^([a-z]+)(?:\+([a-z]+))?:$/.exec(uri?.protocol ?? '') ?? [];
  if (uri === null || driver === '' || uri.host !== '' || (transport !== undefined && transport !== 'unix')) {
    throw LibvirtError.client('InvalidArgument', `${text}: only unix sockets are supported, such as ${DEFAULT_URI}`);
  }
  const explicit = options.socketPath ?? uri.searchParams.get('socket') ?? undefined;
  return {
    driverUri: `${driver}://${uri.pathname}`,
    socketPaths:
      explicit === undefined ? defaultSockets(driver, uri, options.readOnly ?? false, environment) : [explicit],
  };
}

function defaultSockets(
  driver: string,
  uri: URL,
  readOnly: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const isSession = uri.pathname === '/session';
  const suffix = readOnly && !isSession ? '-ro' : '';
  const directory = isSession ? sessionDirectory(environment) : '/var/run/libvirt';
  return [`virt${driver}d-sock${suffix}`, `libvirt-sock${suffix}`].map((name) => join(directory, name));
}

function sessionDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const runtime = environment['XDG_RUNTIME_DIR'];
  if (runtime !== undefined && runtime !== '') return join(runtime, 'libvirt');
  return join(environment['XDG_CACHE_HOME'] ?? join(environment['HOME'] ?? '/', '.cache'), 'libvirt');
}

/** The first socket that exists, or the first of all, whose absence then makes the error. */
export function chooseSocket(target: Target): string {
  const found = target.socketPaths.find((path) => {
    try {
      accessSync(path);
      return true;
    } catch {
      return false;
    }
  });
  return found ?? target.socketPaths[0] ?? '';
}
