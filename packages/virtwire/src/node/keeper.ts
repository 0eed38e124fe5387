import { existsSync, mkdirSync, readFileSync, renameSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import type { VmiKey } from '../controller/store.ts';
import { keyOf } from '../controller/store.ts';
import { deleting } from '../controller/vmi-changes.ts';
import { errorText, hasCode, VirtwireError } from '../errors.ts';
import { findVmFiles } from '../manifest/files.ts';
import { renderProblem } from '../manifest/problem.ts';
import type { KeepStep } from './keep-decide.ts';
import { decideKeep } from './keep-decide.ts';
import { LookTimer } from './look-timer.ts';
import type { ManifestSet, WantedVm } from './manifest-set.ts';
import { readManifests } from './manifest-set.ts';
import type { StandaloneNode } from './standalone-node.ts';
import { ToldLines } from './told.ts';

/** Annotation of a stored VMI: hash of the manifest that it was made from. */
const HASH_ANNOTATION = 'virtwire.io/manifest-hash';

/** What of a node a keeper needs. */
export type KeptNode = Pick<StandaloneNode, 'store' | 'layout' | 'admit'>;

/** What a keeper works with. */
export interface KeeperDeps {
  readonly node: KeptNode;
  readonly manifestsDir: string;
  /** File that remembers, over restarts, which VMs were stopped or shut themselves down. */
  readonly settledFile: string;
  readonly now: () => number;
  readonly tell: (key: VmiKey | undefined, text: string) => void;
}

interface Failures {
  count: number;
  at: number;
}

const hashOfVmi = (vmi: Vmi): string => vmi.metadata.annotations?.[HASH_ANNOTATION] ?? '';

/** Keeps a directory of VMs running: looks at every change of the directory or of a VM. */
export class Keeper implements Disposable {
  readonly #deps: KeeperDeps;
  readonly #settled: Map<VmiKey, string>;
  readonly #failures = new Map<VmiKey, Failures>();
  /** What is wrong with the directory and its manifests. */
  readonly #toldOfAll = new ToldLines();
  /** What is wrong with one VM. */
  readonly #toldOfVm = new ToldLines();
  readonly #watches = new DisposableStack();
  readonly #timer = new LookTimer(() => this.#look());
  #isStopped = false;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
    this.#settled = readSettled(deps.settledFile);
  }

  /** @throws {VirtwireError} `Usage` when the directory does not exist. */
  start(): void {
    const { manifestsDir, node } = this.#deps;
    if (!existsSync(manifestsDir)) throw new VirtwireError('Usage', `--manifests ${manifestsDir}: no such directory`);
    const watcher = watch(manifestsDir, () => this.#timer.soon());
    this.#watches.defer(() => watcher.close());
    this.#watches.use(node.store.watch(() => this.#timer.soon()));
    this.#timer.start();
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#timer[Symbol.dispose]();
    this.#watches.dispose();
  }

  async #look(): Promise<void> {
    let failure: string[] = [];
    try {
      await this.#lookAtAll();
    } catch (caught) {
      failure = [`cannot look at the manifests: ${errorText(caught)}`];
    }
    for (const line of this.#toldOfAll.news('look', failure)) this.#deps.tell(undefined, line);
  }

  async #lookAtAll(): Promise<void> {
    if (this.#isStopped) return;
    const manifests = readManifests(this.#deps.manifestsDir);
    for (const line of this.#toldOfAll.news('manifests', manifests.problems.map(renderProblem))) {
      this.#deps.tell(undefined, line);
    }
    const keys = new Set([
      ...manifests.wanted.keys(),
      ...this.#settled.keys(),
      ...this.#deps.node.store.list().map(keyOf),
    ]);
    this.#toldOfVm.keepOnly((key) => keys.has(key));
    for (const key of keys) {
      await this.#lookAt(key, manifests).catch((caught: unknown) => {
        if (hasCode(caught, 'Conflict')) return;
        for (const line of this.#toldOfVm.news(key, [errorText(caught)])) this.#deps.tell(key, line);
      });
    }
  }

  async #lookAt(key: VmiKey, manifests: ManifestSet): Promise<void> {
    const { store } = this.#deps.node;
    const wanted = manifests.wanted.get(key);
    const vmi = store.get(key);
    const failures = this.#failures.get(key);
    const step = decideKeep({
      wantedHash: wanted?.hash,
      stored:
        vmi === undefined
          ? undefined
          : {
              hash: hashOfVmi(vmi),
              phase: vmi.status?.phase ?? '',
              isStopping: typeof vmi.metadata.deletionTimestamp === 'string',
            },
      settledHash: this.#settled.get(key),
      isManifestUnknown: manifests.hasFaultyFiles,
      failures: failures?.count ?? 0,
      sinceFailureMs: failures === undefined ? Number.POSITIVE_INFINITY : this.#deps.now() - failures.at,
    });
    await this.#execute(step, key, wanted, vmi);
  }

  async #execute(step: KeepStep, key: VmiKey, wanted: WantedVm | undefined, vmi: Vmi | undefined): Promise<void> {
    const { store } = this.#deps.node;
    switch (step.kind) {
      case 'admit':
        if (wanted !== undefined) await this.#admit(key, wanted);
        return;
      case 'stop':
        if (vmi === undefined) return;
        this.#noteFailure(key, vmi);
        this.#deps.tell(key, `stopping: ${step.why}`);
        await store.update(deleting(vmi, new Date(this.#deps.now()), { force: false }));
        return;
      case 'settle':
        if (vmi !== undefined) this.#settle(key, hashOfVmi(vmi));
        return;
      case 'forget':
        this.#settle(key, undefined);
        return;
      case 'wait':
      case 'none':
        return;
    }
  }

  async #admit(key: VmiKey, wanted: WantedVm): Promise<void> {
    const { node } = this.#deps;
    const { problems } = findVmFiles(wanted.vmi, { file: wanted.file, claimsDir: node.layout.claimsDir });
    if (problems.length > 0) {
      for (const line of this.#toldOfVm.news(key, problems.map(renderProblem))) this.#deps.tell(undefined, line);
      return;
    }
    const marked = structuredClone(wanted.vmi);
    marked.metadata.annotations = { ...marked.metadata.annotations, [HASH_ANNOTATION]: wanted.hash };
    this.#deps.tell(key, `starting: ${wanted.file}`);
    for (const problem of wanted.unknown) this.#deps.tell(undefined, renderProblem(problem));
    await node.admit({ ...wanted, vmi: marked }, { keep: true });
    this.#toldOfVm.news(key, []);
  }

  #noteFailure(key: VmiKey, vmi: Vmi): void {
    if (vmi.status?.phase !== 'Failed') {
      this.#failures.delete(key);
      return;
    }
    const count = (this.#failures.get(key)?.count ?? 0) + 1;
    this.#failures.set(key, { count, at: this.#deps.now() });
  }

  #settle(key: VmiKey, hash: string | undefined): void {
    if (hash === undefined) this.#settled.delete(key);
    else this.#settled.set(key, hash);
    const file = this.#deps.settledFile;
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(`${file}.new`, `${JSON.stringify(Object.fromEntries(this.#settled), null, 2)}\n`);
    renameSync(`${file}.new`, file);
  }
}

function readSettled(file: string): Map<VmiKey, string> {
  if (!existsSync(file)) return new Map();
  return new Map(Object.entries(JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>));
}
