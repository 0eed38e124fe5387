import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  connectLauncher,
  createDomainStore,
  createEventHandlers,
  DomainWatch,
  Launchers,
  openGhostRecords,
  startFakeLauncher,
} from '@virtwire/handler/testing';
import type { FakeLauncher, GhostRecord } from '@virtwire/handler/testing';
import { createLogger } from '@virtwire/telemetry';
import type { Domain, Vmi } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';
import { leaveDeadSocket } from './handler/dead-socket.ts';

interface SocketState {
  readonly state: 'serving' | 'dead' | 'none' | 'no-directory';
  readonly domain?: unknown;
  readonly fail?: string;
  readonly code?: number;
  readonly codeMessage?: string;
  readonly versions?: readonly number[];
}

interface Request {
  readonly rpc: 'HandleDomainEvent' | 'HandleK8SEvent' | 'Info';
  readonly domainJSON?: string;
  readonly statusJSON?: string;
  readonly eventType?: string;
  readonly eventJSON?: string;
}

interface Input {
  readonly kind: 'list' | 'resync' | 'watchdog' | 'notify';
  readonly now: string;
  readonly watchdogTimeout?: number;
  readonly ghostRecords?: readonly GhostRecord[];
  readonly ghostRecordFiles?: Readonly<Record<string, string>>;
  readonly sockets?: Readonly<Record<string, SocketState>>;
  readonly steps?: readonly { readonly now: string; readonly sockets?: Input['sockets'] }[];
  readonly vmis?: readonly Vmi[];
  readonly requests?: readonly Request[];
}

interface Expected {
  readonly domains?: readonly object[];
  readonly events?: readonly object[];
  readonly ticks?: readonly { readonly events: readonly object[]; readonly markers: readonly string[] }[];
  readonly results?: readonly {
    readonly response: { readonly success?: boolean };
    readonly watchEvents: readonly { readonly type: string }[];
    readonly k8sEvents: readonly object[];
  }[];
}

const LISTING_LIMIT_MS = 20_000;

/** One case is a listing, a resync, some rounds of the watchdog, or calls to the notify service. */
export async function* runHandlerDomains(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as Input;
    const expected = files.json(`${name}/output.json`) as Expected;
    yield await runCase(name, () => (input.kind === 'notify' ? runNotify(input, expected) : runWatch(input, expected)));
  }
}

/** A domain as the cases show it. */
function abridged(domain: Domain): Readonly<Record<string, string>> {
  const { name = '', namespace = '', uid = '', deletionTimestamp } = domain.ObjectMeta;
  return {
    name,
    namespace,
    uid,
    metadataUID: domain.Spec.Metadata.KubeVirt.UID ?? '',
    status: domain.Status.Status ?? '',
    reason: domain.Status.Reason ?? '',
    specName: domain.Spec.Name ?? '',
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  };
}

class WatchScene implements AsyncDisposable {
  readonly #root = mkdtempSync('/tmp/vd');
  readonly #podsDir = join(this.#root, 'p');
  readonly #fakes = new Map<string, FakeLauncher>();
  readonly store = createDomainStore();
  readonly records: ReturnType<typeof openGhostRecords>;
  readonly watch: DomainWatch;
  readonly #launchers: Launchers;
  nowMs: number;

  constructor(input: Input) {
    this.nowMs = Date.parse(input.now);
    const log = createLogger('virt-handler', { destination: new Writable({ write: (_c, _e, done) => done() }) });
    const directory = join(this.#root, 'private/ghost-records');
    mkdirSync(directory, { recursive: true });
    for (const record of input.ghostRecords ?? []) {
      const real = { ...record, socketFile: this.real(record.socketFile) };
      writeFileSync(join(directory, record.uid), JSON.stringify(real));
    }
    for (const [name, text] of Object.entries(input.ghostRecordFiles ?? {})) writeFileSync(join(directory, name), text);
    this.records = openGhostRecords(join(this.#root, 'private'), this.#podsDir, log);
    const now = (): number => this.nowMs;
    this.#launchers = new Launchers(
      {
        records: this.records,
        connect: connectLauncher,
        openPipe: async () => ({ [Symbol.asyncDispose]: async () => undefined }),
        detectIsolation: async () => ({ pid: 1, ppid: 0, rootPath: '/' }),
        now,
        log,
      },
      { podsDir: this.#podsDir, nodeName: '' },
    );
    const { store, records } = this;
    this.watch = new DomainWatch(
      { store, records, launchers: this.#launchers, connect: connectLauncher, isNonRoot: () => false, now, log },
      { watchdogTimeoutMs: (input.watchdogTimeout ?? 30) * 1_000, resyncPeriodMs: 300_000 },
    );
  }

  /** A path of a case in the temporary directory. */
  real(path: string): string {
    return path.replace(/^\/pods/, this.#podsDir);
  }

  async place(sockets: Input['sockets'] = {}): Promise<void> {
    for (const [path, state] of Object.entries(sockets)) await this.#placeOne(this.real(path), state);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#launchers[Symbol.asyncDispose]();
    await this.watch[Symbol.asyncDispose]();
    for (const fake of this.#fakes.values()) fake.kill();
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #placeOne(path: string, state: SocketState): Promise<void> {
    this.#fakes.get(path)?.kill();
    this.#fakes.delete(path);
    rmSync(path, { force: true });
    if (state.state === 'no-directory') rmSync(dirname(path), { recursive: true, force: true });
    else mkdirSync(dirname(path), { recursive: true });
    if (state.state === 'dead') await leaveDeadSocket(path);
    if (state.state !== 'serving') return;
    const fake = await startFakeLauncher(path);
    this.#fakes.set(path, fake);
    fake.versions = state.versions ?? [1];
    fake.domain = state.domain === undefined || state.domain === null ? '' : JSON.stringify(state.domain);
    const { fail, code, codeMessage } = state;
    if (fail !== undefined) fake.answer('GetDomain', { success: false, message: fail });
    if (code !== undefined) fake.answer('GetDomain', { code, codeMessage: codeMessage ?? '' });
  }
}

async function runWatch(input: Input, expected: Expected): Promise<readonly string[]> {
  await using scene = new WatchScene(input);
  await scene.place(input.sockets);
  const events: object[] = [];
  using _watch = scene.store.watch((key) => {
    const domain = scene.store.get(key);
    if (domain !== undefined) events.push({ type: 'MODIFIED', object: abridged(domain) });
  });
  if (input.kind === 'resync') {
    await scene.watch.resync();
    return diffJson(expected.events, events, '/events');
  }
  if (input.kind === 'watchdog') return await runWatchdog(scene, input, expected, events);
  scene.watch.start();
  const isHeard = (): boolean =>
    scene.records.list().every((one) => scene.store.isKnown(`${one.namespace}/${one.name}`));
  for (let waitedMs = 0; !isHeard() && waitedMs < LISTING_LIMIT_MS; waitedMs += 5) await sleep(5);
  const domains = scene.store.keys().map((key) => scene.store.get(key));
  const shown = domains.filter((domain) => domain !== undefined).map(abridged);
  // A record without a name stands for no VMI: it is moved aside, where the model lists it as one that is gone.
  const wanted = (expected.domains ?? []).filter((domain) => (domain as { name?: string }).name !== '');
  return diffJson(sorted(wanted), sorted(shown), '/domains');
}

function sorted(domains: readonly object[]): readonly object[] {
  const key = (domain: object): string => (domain as { name?: string }).name ?? '';
  return [...domains].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

async function runWatchdog(
  scene: WatchScene,
  input: Input,
  expected: Expected,
  events: object[],
): Promise<readonly string[]> {
  const differences: string[] = [];
  for (const [i, step] of (input.steps ?? []).entries()) {
    scene.nowMs = Date.parse(step.now);
    await scene.place(step.sockets);
    events.length = 0;
    await scene.watch.checkSockets();
    const markers = (input.ghostRecords ?? [])
      .map(({ socketFile }) => join(dirname(socketFile), 'launcher-unresponsive'))
      .filter((marker) => existsSync(scene.real(marker)));
    const tick = expected.ticks?.[i];
    differences.push(...diffJson({ events: tick?.events, markers: tick?.markers }, { events, markers }, `/ticks/${i}`));
  }
  return differences;
}

async function runNotify(input: Input, expected: Expected): Promise<readonly string[]> {
  const store = createDomainStore();
  const watchEvents: object[] = [];
  const k8sEvents: object[] = [];
  using _watch = store.watch((key) => {
    const domain = store.get(key);
    watchEvents.push(domain === undefined ? { key } : abridged(domain));
  });
  const handlers = createEventHandlers({
    store,
    getVmi: (key) => input.vmis?.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
    events: {
      event: ({ namespace, name, uid }, type, reason, message) =>
        k8sEvents.push({ object: { namespace, name, uid }, type, reason, message }),
    },
    log: createLogger('virt-handler', { destination: new Writable({ write: (_c, _e, done) => done() }) }),
  });
  const context = { identity: undefined, signal: new AbortController().signal };
  const bytes = (text = ''): Uint8Array => Buffer.from(text);
  const differences: string[] = [];
  for (const [i, request] of (input.requests ?? []).entries()) {
    if (request.rpc === 'Info') continue; // the version exchange is the server's, not the handlers'
    watchEvents.length = 0;
    k8sEvents.length = 0;
    const { domainJSON, statusJSON, eventType = '', eventJSON } = request;
    const answer =
      request.rpc === 'HandleK8SEvent'
        ? await handlers.handleK8sEvent({ eventJSON: bytes(eventJSON) }, context)
        : await handlers.handleDomainEvent(
            { domainJSON: bytes(domainJSON), statusJSON: bytes(statusJSON), eventType },
            context,
          );
    const want = expected.results?.[i];
    differences.push(
      ...diffJson(
        want?.response.success ?? false,
        (answer as { success?: boolean } | undefined)?.success ?? true,
        `/${i}/success`,
      ),
      // An ERROR event stays with its VM: nothing is told to the watch (FM-2.3).
      ...diffJson(
        want?.watchEvents.filter(({ type }) => type !== 'ERROR').length,
        watchEvents.length,
        `/${i}/watchEvents`,
      ),
      ...diffJson(want?.k8sEvents, k8sEvents, `/${i}/k8sEvents`),
    );
  }
  return differences;
}
