import { basename, dirname, join } from 'node:path';

import { type Domain, parseVmiJson, renderJson, splitDomainName, type Vmi } from '@virtwire/vm-model';

import type {
  ActionOutcome,
  CallOutcome,
  EmulatedHandler,
  EmulatedHandlerOptions,
  HandlerAction,
  ReceivedEvent,
  RecordedCall,
  VmIdentity,
} from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { factsOf } from '../lines/lines.ts';
import { createRecorder, type Recorder } from '../recorder.ts';
import { openReleaseSchema, type Fields, type ReleaseSchema } from '../schema/release-schema.ts';
import type { GrpcServer } from '../transport/grpc-server.ts';
import { createWaiter, type Waiter } from '../waiter.ts';
import { type ActionContext, runAction } from './actions.ts';
import { DomainStore, type EventAnswer } from './domain-store.ts';
import { type ClientDeps, connectLauncher } from './launcher-client.ts';
import { serveEmulatedNotify } from './notify-server.ts';
import { Session } from './session.ts';
import { type GhostRecord, listSockets, type SocketDirs } from './sockets.ts';
import { wireVmi } from './vmi-json.ts';

const POLL_MS = 20;
/** From the answer to an event to the controller that reads it. */
const CRASH_DELAY_MS = 5;
/** How often releases that watch their notify socket look. @source releases.json eras.notifyServerSelfWatch */
const WATCH_MS = 5_000;

/**
 * Starts a handler of a release line: its notify server serves when this returns.
 *
 * @throws {CompatError} `ServeFailed`.
 */
export async function startEmulatedHandler(options: EmulatedHandlerOptions): Promise<EmulatedHandler> {
  const handler = new Handler(options);
  await handler.restoreNotify();
  return handler;
}

class Handler implements EmulatedHandler {
  readonly line: EmulatedHandlerOptions['line'];
  readonly release: string;
  readonly notifySocket: string;
  readonly #options: EmulatedHandlerOptions;
  readonly #facts: LineFacts;
  readonly #schema: ReleaseSchema;
  readonly #recorder: Recorder;
  readonly #waiter: Waiter;
  readonly #store: DomainStore;
  readonly #client: ClientDeps;
  readonly #dirs: SocketDirs;
  readonly #sessions = new Map<string, Session>();
  #server: GrpcServer | undefined;
  #watch: NodeJS.Timeout | undefined;
  #process: EmulatedHandler['state']['process'] = 'running';
  #crashReason: string | undefined;

  constructor(options: EmulatedHandlerOptions) {
    this.#options = options;
    this.line = options.line;
    this.#facts = factsOf(options.line, options.patch);
    this.release = this.#facts.release.value;
    // releases.json eras.handlerNotifySocket
    this.notifySocket = join(options.shareDir, 'domain-notify.sock');
    this.#schema = openReleaseSchema(this.release);
    this.#waiter = createWaiter(() => this.#describe());
    this.#recorder = createRecorder(() => this.#waiter.changed());
    this.#store = new DomainStore(this.#facts);
    this.#dirs = {
      podsDir: options.podsDir,
      // `/var/run/kubevirt` and `/var/run/kubevirt-private` lie side by side.
      recordsDir: join(dirname(options.shareDir), `${basename(options.shareDir)}-private`, 'ghost-records'),
      nodeName: options.nodeName ?? 'node01',
    };
    this.#client = {
      facts: this.#facts,
      schema: this.#schema,
      timeoutFactor: options.timeoutFactor ?? 1,
      tamper: options.tamper ?? {},
      record: (call) => this.#recorder.record(call),
    };
  }

  get calls(): readonly RecordedCall[] {
    return this.#recorder.calls;
  }

  get events(): readonly ReceivedEvent[] {
    return this.#store.events;
  }

  get state(): EmulatedHandler['state'] {
    return { process: this.#process, crashReason: this.#crashReason };
  }

  domain(vmi: VmIdentity): Fields | undefined {
    return this.#store.domain(vmi) as Fields | undefined;
  }

  /** @source releases.json eras.migrationMetadataCompletedKey */
  hasMigrationEnded(vmi: VmIdentity): boolean {
    const migration = this.#store.domain(vmi)?.Spec.Metadata.KubeVirt.Migration;
    const byKey = this.#facts.handler.migrationEnd.value === 'completedKey';
    return byKey ? migration?.Completed === true : migration?.EndTimestamp !== undefined;
  }

  waitFor(what: string, condition: (handler: EmulatedHandler) => boolean, timeoutMs?: number): Promise<void> {
    return this.#waiter.waitFor(`${this.line} handler: ${what}`, () => condition(this), timeoutMs);
  }

  #describe(): string {
    const calls = this.calls.slice(-6).map(({ rpc, code }) => `${rpc}:${code}`);
    const events = this.events.slice(-4).map(({ type, error }) => `${type}${error === undefined ? '' : ` (${error})`}`);
    return `process ${this.#process}, last calls ${calls.join(' ')}, last events ${events.join(' ')}`;
  }

  async run(action: HandlerAction, vmi: Fields, podUid: string): Promise<ActionOutcome> {
    const outcomes: CallOutcome[] = [];
    try {
      await runAction(action, this.#contextOf(wireVmi(vmi, this.#facts.handler), vmi, podUid, outcomes));
      return { action, ok: true, calls: outcomes, error: undefined };
    } catch (caught) {
      const error = caught instanceof Error ? caught.message : String(caught);
      return { action, ok: false, calls: outcomes, error };
    } finally {
      this.#waiter.changed();
    }
  }

  #contextOf(vmi: Vmi, given: Fields, podUid: string, outcomes: CallOutcome[]): ActionContext {
    const { namespace, name } = vmi.metadata;
    this.#store.keepVmi(parseVmiJson(renderJson(given)));
    return {
      facts: this.#facts.handler,
      hasRpc: (rpc) => this.#schema.cmdRpcs.has(rpc),
      vmi,
      session: this.#sessionOf(vmi, podUid),
      expandDisks: this.#options.expandDisks ?? false,
      timeoutFactor: this.#client.timeoutFactor,
      outcomes,
      domain: () => this.#store.domain({ namespace, name }),
      waitFor: (what, condition, timeoutMs) => this.#poll(what, condition, timeoutMs),
      listDomains: () => this.#listDomains(outcomes),
    };
  }

  /** Files appear without a sign, so there is a look now and then beside the look after each change. */
  async #poll(what: string, condition: () => boolean, timeoutMs: number): Promise<void> {
    const timer = setInterval(() => this.#waiter.changed(), POLL_MS);
    try {
      await this.#waiter.waitFor(`${this.line} handler: ${what}`, condition, timeoutMs);
    } finally {
      clearInterval(timer);
    }
  }

  #sessionOf(vmi: Vmi, podUid: string): Session {
    const key = `${vmi.metadata.uid}/${podUid}`;
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const { podShareDir } = this.#options;
    const notifyAnswered = async (): Promise<void> => this.#server?.idle();
    const { notifySocket } = this;
    const deps = { client: this.#client, dirs: this.#dirs, notifySocket, podShareDir, notifyAnswered };
    const session = new Session(deps, podUid);
    this.#sessions.set(key, session);
    return session;
  }

  /** At start, at each resync and after an ERROR event. */
  async #listDomains(outcomes: CallOutcome[]): Promise<void> {
    for (const entry of listSockets(this.#dirs, this.#facts.handler)) await this.#listOne(entry, outcomes);
  }

  async #listOne(entry: Partial<GhostRecord>, outcomes: CallOutcome[]): Promise<void> {
    const { namespace = '', name = '', uid = '' } = entry;
    try {
      using client = await connectLauncher(this.#client, entry.socketFile ?? '', outcomes);
      const outcome = await client.call('GetDomain', {});
      outcomes.push(outcome);
      if (!outcome.ok) throw new Error(outcome.error);
      const domain = outcome.response?.['domain'];
      // The recorder shows embedded JSON as values; here the text is wanted.
      const text = domain === undefined || domain === '' ? '' : renderJson(domain);
      this.#answerTo(this.#store.takeListed(text, identityOf(domain, { namespace, name })));
    } catch {
      if (uid !== '') this.#store.markUnreachable({ namespace, name, uid });
    }
  }

  // The notify server.

  async restoreNotify(): Promise<void> {
    if (this.#server !== undefined || this.#process !== 'running') return;
    clearTimeout(this.#watch);
    this.#server = await serveEmulatedNotify(this.notifySocket, {
      facts: this.#facts,
      schema: this.#schema,
      takeDomainEvent: (request) => this.#takeDomainEvent(request),
      takeK8sEvent: (request) => this.#store.takeK8sEvent(request),
      crash: () => void setTimeout(() => this.#crash(), CRASH_DELAY_MS),
      record: (call) => this.#recorder.record(call),
    });
  }

  async loseNotify(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.kill();
    if (!this.#facts.handler.watchesNotifySocket.value) return;
    this.#watch = setTimeout(() => void this.restoreNotify(), WATCH_MS * this.#client.timeoutFactor);
    this.#watch.unref();
  }

  #takeDomainEvent(request: Fields): EventAnswer {
    const answer = this.#store.takeDomainEvent(request);
    if (request['eventType'] === 'ERROR' && answer.success) void this.#listDomains([]);
    return answer;
  }

  #answerTo(answer: EventAnswer): void {
    if (answer.isFatal) this.#crash();
  }

  #crash(): void {
    if (this.#process !== 'running') return;
    this.#crashReason = this.events.findLast(({ error }) => error !== undefined)?.error ?? 'unknown';
    void this.#end('crashed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('stopped');
  }

  async #end(process: 'stopped' | 'crashed'): Promise<void> {
    if (this.#process !== 'running') return;
    this.#process = process;
    clearTimeout(this.#watch);
    const server = this.#server;
    this.#server = undefined;
    const closed = [...this.#sessions.values()].map((session) => session.close());
    await Promise.all([server?.kill(), ...closed]);
    this.#waiter.changed();
  }
}

/** A launcher that no record names says itself whose it is. */
function identityOf(
  domain: unknown,
  known: Pick<VmIdentity, 'namespace' | 'name'>,
): Pick<VmIdentity, 'namespace' | 'name'> {
  if (known.name !== '' || typeof domain !== 'object' || domain === null) return known;
  return splitDomainName((domain as Partial<Domain>).Spec?.Name ?? '');
}
