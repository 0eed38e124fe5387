import { normalize } from 'node:path/posix';
import { errnoOf, HostError, SafePath } from '@virtwire/host';
import { ProtoError } from '@virtwire/shared-proto';
import { callMutateDomain } from '@virtwire/shared-proto/hooks';
import type { Clock } from '../config/clock.ts';
import { LauncherError, textOf } from '../errors.ts';

/** What calling the sidecar of a plugin needs. */
export interface PluginSidecarDeps {
  readonly clock: Clock;
  /** Each plugin has a directory of its name in it. */
  readonly baseDir: string;
}

/** One call of a plugin's sidecar. */
export interface PluginSidecarCall {
  readonly pluginName: string;
  readonly socketPath: string;
  readonly timeoutMs: number;
  readonly domainXML: string;
  readonly vmiJson: string;
  readonly invocationContext: string;
}

const READY_TIMEOUT_MS = 30_000;
const LOOK_EVERY_MS = 500;
const DIAL_TIMEOUT_MS = 5_000;

/**
 * Lets the sidecar of a plugin change a domain, once its socket is there.
 *
 * @returns what it answered.
 * @throws {LauncherError} `HookFailed` when it is not ready in time, lies outside the plugin's directory, or fails.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/plugins/sidecar.go
 */
export async function callPluginSidecar(deps: PluginSidecarDeps, call: PluginSidecarCall): Promise<string> {
  const { pluginName, timeoutMs, domainXML, vmiJson, invocationContext } = call;
  await waitForSocket(deps, call);
  using socket = openSocket(deps.baseDir, call);
  try {
    const params = { domainXML: Buffer.from(domainXML), vmi: Buffer.from(vmiJson), invocationContext };
    const answer = await callMutateDomain(socket.procPath, params, { dialTimeoutMs: DIAL_TIMEOUT_MS, timeoutMs });
    return Buffer.from(answer).toString('utf8');
  } catch (caught) {
    if (caught instanceof ProtoError && caught.code === 'DialFailed') {
      throw LauncherError.from(caught, 'HookFailed', `dialing sidecar socket ${call.socketPath}: `);
    }
    throw callFailure(pluginName, caught);
  }
}

/** `rpc error: code = Unknown desc = no` reads `failed with Unknown: no` here. */
function callFailure(pluginName: string, caught: unknown): LauncherError {
  const status = /^rpc error: code = (\S+) desc = ([^]*)$/.exec(textOf(caught));
  const what = status === null ? `: ${textOf(caught)}` : ` with ${status[1] ?? ''}: ${status[2] ?? ''}`;
  const text = `MutateDomain RPC to ${pluginName} failed${what}`;
  return new LauncherError('HookFailed', text, { cause: caught });
}

async function waitForSocket({ clock, baseDir }: PluginSidecarDeps, call: PluginSidecarCall): Promise<void> {
  const giveUpAtMs = clock.now() + READY_TIMEOUT_MS;
  while (!isThere(baseDir, call)) {
    if (clock.now() >= giveUpAtMs) {
      const text = `sidecar socket ${call.socketPath} not ready after 30s: context deadline exceeded`;
      throw new LauncherError('HookFailed', text);
    }
    await clock.sleep(LOOK_EVERY_MS);
  }
}

function isThere(baseDir: string, call: PluginSidecarCall): boolean {
  try {
    openSocket(baseDir, call)[Symbol.dispose]();
    return true;
  } catch (caught) {
    if (caught instanceof LauncherError && errnoOf(caught.cause) === 'ENOENT') return false;
    throw caught;
  }
}

/**
 * The socket itself, found without following a link: the plugin's containers can write to the directory, and what is
 * checked here is what is connected to.
 */
function openSocket(baseDir: string, { pluginName, socketPath }: PluginSidecarCall): SafePath {
  const dir = `${baseDir}/${pluginName}/`;
  const path = normalize(socketPath);
  if (!path.startsWith(dir) || path === dir) {
    throw new LauncherError('HookFailed', `invalid socket path: socket path "${socketPath}" is outside ${dir}`);
  }
  try {
    using base = SafePath.openRoot(baseDir);
    return base.join(...path.slice(baseDir.length + 1).split('/'));
  } catch (caught) {
    const isLink = caught instanceof HostError && caught.code === 'UnsafePath';
    const why = isLink ? `socket path "${socketPath}" is a symlink, which is not allowed` : textOf(caught);
    throw new LauncherError('HookFailed', `invalid socket path: ${why}`, { cause: caught });
  }
}
