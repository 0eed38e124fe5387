import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { domainName } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { setAuthorizedKeys } from './authorized-keys.ts';
import type { CredentialSource } from './secrets.ts';
import { credentialSources, readCredentials } from './secrets.ts';

/** What propagating credentials needs. */
export interface CredentialPropagationDeps {
  /** The connection for calls that wait for the guest. */
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'agentCommand' | 'setUserPassword' | 'setAuthorizedSshKeys'
  >;
  readonly metadata: Pick<MetadataCache, 'accessCredential'>;
  readonly clock: Clock;
  /** Directory in which the pod has its secrets mounted. */
  readonly secretDir: string;
}

/** Keeps passwords and SSH keys of the guest's users as the mounted secrets say. */
export interface CredentialPropagation {
  /**
   * Starts to watch the secrets that this VMI wants in its guest by way of the agent. Nothing happens without such
   * secrets, or when it was started before.
   *
   * @throws {LauncherError} `CredentialsFailed` when a secret cannot be watched.
   */
  start(vmi: Vmi, log: Logger): void;
  stop(): void;
}

/** Changes are gathered that long, so that several at once reach the guest once. */
const BATCH_MS = 15_000;
/** The guest may have lost what it was given. */
const RESYNC_MS = 5 * 60_000;
/** What agents say goes into it, and from there into a condition of the VMI. */
const MAX_MESSAGE_CHARS = 2_048;
const OFFLINE = 'Guest agent is offline';

function watchError(caught: unknown): LauncherError {
  // Without node's own prefix and path: `ENOENT: no such file or directory, watch '/a'`.
  const text = textOf(caught).replace(/^[A-Z]+: (.*), watch '.*'$/, '$1');
  const doing = 'Starting qemu agent access credential propagation failed: ';
  return new LauncherError('CredentialsFailed', `${doing}${text}`, { cause: caught });
}

/** Creates a propagation at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/access-credentials/access_credentials.go` */
export function createCredentialPropagation(deps: CredentialPropagationDeps): CredentialPropagation {
  return new AgentPropagation(deps);
}

class AgentPropagation implements CredentialPropagation {
  readonly #deps: CredentialPropagationDeps;
  readonly #ending = new AbortController();
  #watchers: readonly FSWatcher[] = [];
  #isStarted = false;
  /** A secret changed since the last run. */
  #isChanged = true;
  /** The next wake-up of any kind runs: nothing was done yet, or the last run failed. */
  #isDue = true;
  #wakeUp = new AbortController();

  constructor(deps: CredentialPropagationDeps) {
    this.#deps = deps;
  }

  start(vmi: Vmi, log: Logger): void {
    if (this.#isStarted) return;
    const sources = credentialSources(vmi, this.#deps.secretDir);
    if (sources.length === 0) return;
    try {
      for (const { dir } of sources) this.#watchers = [...this.#watchers, this.#watch(dir, log)];
    } catch (caught) {
      this.#closeWatchers();
      throw watchError(caught);
    }
    this.#isStarted = true;
    void this.#run(domainName(vmi.metadata.namespace, vmi.metadata.name), sources, log);
  }

  stop(): void {
    this.#ending.abort();
    this.#wakeUp.abort();
    this.#closeWatchers();
  }

  #watch(dir: string, log: Logger): FSWatcher {
    const watcher = watch(dir, { persistent: false }, () => {
      this.#isChanged = true;
      this.#wakeUp.abort();
    });
    watcher.on('error', (caught) => {
      log.error({ reason: caught }, 'Error encountered while watching downward api secret');
    });
    return watcher;
  }

  #closeWatchers(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  async #run(name: string, sources: readonly CredentialSource[], log: Logger): Promise<void> {
    const { clock } = this.#deps;
    const isEnding = (): boolean => this.#ending.signal.aborted;
    let batchAtMs = clock.now() + BATCH_MS;
    let resyncAtMs = clock.now() + RESYNC_MS;
    while (!isEnding()) {
      this.#wakeUp = new AbortController();
      await clock.sleep(Math.min(batchAtMs, resyncAtMs) - clock.now(), this.#wakeUp.signal);
      if (isEnding()) return;
      const nowMs = clock.now();
      if (nowMs >= batchAtMs) {
        if (this.#isChanged) log.debug('Reloading access credentials because secret changed');
        this.#isDue ||= this.#isChanged;
        batchAtMs = nowMs + BATCH_MS;
      }
      if (nowMs >= resyncAtMs) {
        log.debug('Resyncing access credentials due to recurring resync period');
        this.#isDue = true;
        resyncAtMs = nowMs + RESYNC_MS;
      }
      if (this.#isDue) await this.#propagate(name, sources, log);
    }
  }

  async #propagate(name: string, sources: readonly CredentialSource[], log: Logger): Promise<void> {
    this.#isChanged = false;
    this.#isDue = false;
    const failures = (await this.#isAgentThere(name)) ? await this.#write(name, sources, log) : [OFFLINE];
    if (this.#ending.signal.aborted) return;
    this.#isDue = failures.length > 0;
    const Message = failures.join('; ').slice(0, MAX_MESSAGE_CHARS);
    // A cause is told once, not at each try.
    const isNews = this.#deps.metadata.accessCredential.load()?.Message !== Message;
    if (isNews && Message !== '') log.error({ reason: Message }, 'Access credentials are not in the guest yet');
    this.#deps.metadata.accessCredential.update(() => ({ Succeeded: failures.length === 0, Message }));
  }

  async #isAgentThere(name: string): Promise<boolean> {
    const { libvirt } = this.#deps;
    try {
      await libvirt.agentCommand(await libvirt.lookupDomainByName(name), '{"execute":"guest-ping"}');
      return true;
    } catch {
      return false;
    }
  }

  async #write(name: string, sources: readonly CredentialSource[], log: Logger): Promise<readonly string[]> {
    const { libvirt, clock } = this.#deps;
    const { keys, passwords, failures } = await readCredentials(sources);
    const all = [...failures];
    for (const [user, list] of keys) {
      try {
        await setAuthorizedKeys({ libvirt, clock, log }, name, user, list);
      } catch (caught) {
        all.push(`Error encountered writing ssh pub key access credentials for user [${user}]: ${textOf(caught)}`);
      }
    }
    for (const [user, password] of passwords) {
      try {
        await libvirt.setUserPassword(await libvirt.lookupDomainByName(name), user, password);
      } catch (caught) {
        all.push(`Error encountered setting password for user [${user}]: ${textOf(caught)}`);
      }
    }
    return all;
  }
}
