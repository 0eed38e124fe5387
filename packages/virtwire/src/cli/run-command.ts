import type { Vmi } from '@virtwire/vm-model';
import type { VmiKey } from '../controller/store.ts';
import { keyOf } from '../controller/store.ts';
import { deleting } from '../controller/vmi-changes.ts';
import { hasCode, VirtwireError } from '../errors.ts';
import { checkManifest } from '../manifest/check.ts';
import type { ManifestVmi } from '../manifest/parse.ts';
import { manifestError, renderProblem } from '../manifest/problem.ts';
import { readManifest } from '../manifest/read.ts';
import { openNode } from '../node/standalone-node.ts';
import type { StandaloneNode } from '../node/standalone-node.ts';
import { openEventFiles } from '../state/event-files.ts';
import type { EventFiles } from '../state/event-files.ts';
import type { NodeLayout } from '../state/layout.ts';
import { attachConsole, connectSerial } from './console.ts';
import type { ConsoleInput } from './console.ts';
import { EXIT } from './exit-codes.ts';
import { Interrupts } from './interrupts.ts';
import type { Output } from './output.ts';
import { createProgress } from './progress.ts';
import type { Progress } from './progress.ts';
import { waitForVmi } from './watch-vmi.ts';

/** What `virtwire run` is called with. */
export interface RunRequest {
  readonly file: string;
  readonly layout: NodeLayout;
  readonly console: boolean;
  readonly output: Output;
  readonly input: ConsoleInput;
  /** Emits SIGINT and SIGTERM. */
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Reads the one VM of a manifest file and checks everything that can be checked before a start.
 *
 * @throws {VirtwireError} `BadManifest` with file, field and remedy.
 */
export function loadManifest(file: string, layout: NodeLayout): ManifestVmi {
  const { vmis, problems } = readManifest(file);
  const [problem, ...more] = problems;
  if (problem !== undefined) throw manifestError([problem, ...more]);
  const [manifest, second] = vmis;
  if (manifest === undefined) throw new VirtwireError('BadManifest', `${file}: holds no VirtualMachineInstance`);
  if (second !== undefined) {
    throw new VirtwireError(
      'BadManifest',
      `${file}: holds ${vmis.length} VMs, run takes one: use virtwire node --manifests`,
    );
  }
  const [bad, ...others] = checkManifest(manifest, layout.claimsDir);
  if (bad !== undefined) throw manifestError([bad, ...others]);
  return manifest;
}

/** Asks a VM to end; repeats on a conflict, since the handler writes too. */
export async function requestStop(node: Pick<StandaloneNode, 'store'>, key: VmiKey, force: boolean): Promise<void> {
  for (;;) {
    const vmi = node.store.get(key);
    if (vmi === undefined) return;
    try {
      await node.store.update(deleting(vmi, new Date(), { force }));
      return;
    } catch (caught) {
      if (hasCode(caught, 'NotFound')) return; // it went away between the look and the write
      if (!hasCode(caught, 'Conflict')) throw caught;
    }
  }
}

function hasRun({ status }: Vmi): boolean {
  return status?.phase === 'Running' || status?.phaseTransitionTimestamps?.some((t) => t.phase === 'Running') === true;
}

/** The exit code of a run that came to its end. */
export function exitOfRun(end: {
  /** How often it was interrupted: once asks the guest, twice kills it. */
  readonly interrupts: number;
  readonly hasRun: boolean;
  readonly phase: string | undefined;
}): number {
  if (end.interrupts > 1 || (end.interrupts === 1 && !end.hasRun)) return EXIT.interrupted;
  return end.phase === 'Succeeded' ? EXIT.ok : EXIT.failed;
}

/** What a run has from before the node was opened. */
interface Outside {
  readonly progress: Progress;
  readonly interrupts: Interrupts;
}

class Run {
  readonly #request: RunRequest;
  readonly #node: StandaloneNode;
  readonly #key: VmiKey;
  readonly #progress: Progress;
  readonly #consoleEnd = new AbortController();
  readonly #events: EventFiles;
  readonly #interrupts: Interrupts;
  readonly #failure = Promise.withResolvers<never>();
  #final: Vmi | undefined;
  #hasRun = false;

  constructor(request: RunRequest, node: StandaloneNode, key: VmiKey, outside: Outside) {
    this.#request = request;
    this.#node = node;
    this.#key = key;
    this.#progress = outside.progress;
    this.#interrupts = outside.interrupts;
    this.#events = openEventFiles(node.layout.eventsDir);
  }

  async toTheEnd(): Promise<number> {
    this.#interrupts.listen((count) => this.#interrupt(count));
    try {
      const gone = this.#waitUntilGone();
      if (this.#request.console) void this.#showConsole();
      await Promise.race([gone, this.#failure.promise]);
    } finally {
      this.#consoleEnd.abort();
      this.#interrupts.listen(() => undefined);
    }
    const { count } = this.#interrupts;
    return exitOfRun({ interrupts: count, hasRun: this.#hasRun, phase: this.#final?.status?.phase });
  }

  async #waitUntilGone(): Promise<void> {
    const { store } = this.#node;
    await waitForVmi(store, this.#key, (vmi) => (vmi === undefined ? true : undefined), {
      what: 'the end of the VM',
      onChange: (vmi) => {
        this.#progress.see(vmi);
        this.#progress.warn(this.#events.read(this.#key));
        const phase = vmi?.status?.phase;
        this.#hasRun ||= vmi !== undefined && hasRun(vmi);
        if (vmi === undefined || (phase !== 'Succeeded' && phase !== 'Failed')) return;
        this.#final = vmi;
        if (typeof vmi.metadata.deletionTimestamp !== 'string') this.#stop(false);
      },
    });
  }

  #interrupt(count: number): void {
    if (count > 2) return;
    const isForced = count === 2;
    this.#progress.step(isForced ? 'killing the VM' : 'shutting down (Ctrl-C again: kill)');
    this.#stop(isForced);
  }

  #stop(isForced: boolean): void {
    requestStop(this.#node, this.#key, isForced).catch(this.#failure.reject);
  }

  async #showConsole(): Promise<void> {
    const { output, input } = this.#request;
    const { signal } = this.#consoleEnd;
    try {
      const isRunning = (vmi: Vmi | undefined): true | undefined =>
        vmi?.status?.phase === 'Running' ? true : undefined;
      await waitForVmi(this.#node.store, this.#key, isRunning, { what: 'the console', signal });
      const record = this.#node.records.read(this.#node.store.get(this.#key)?.metadata.uid ?? '');
      if (record === undefined) return;
      this.#progress.step('console of the guest (Ctrl-] leaves it, the VM goes on)');
      const end = await attachConsole(await connectSerial(record), input, output, signal);
      if (end === 'left') this.#progress.step('console left; Ctrl-C shuts the VM down');
    } catch (caught) {
      if (!signal.aborted) this.#progress.step(`console: ${caught instanceof Error ? caught.message : String(caught)}`);
    }
  }
}

/** Runs the VM of a manifest in the foreground until it ends; removes everything it made. */
export async function runVm(request: RunRequest): Promise<number> {
  const startedAt = Date.now();
  const progress = createProgress(request.output, Date.now, startedAt);
  const { layout, file } = request;
  const manifest = loadManifest(file, layout);
  progress.step(`manifest ${file}: VM ${keyOf(manifest.vmi)}`);
  for (const problem of manifest.unknown) progress.step(renderProblem(problem));
  const command = `virtwire run ${file}`;
  const onHandlerRestart = (reason: string): void => progress.step(`handler ended (${reason}), starting it again`);
  using interrupts = new Interrupts(request.signals);
  await using node = await openNode({ layout, command, onHandlerRestart });
  if (interrupts.count > 0) {
    progress.step('interrupted before the VM was started');
    return EXIT.interrupted;
  }
  progress.step('handler started');
  const key = keyOf(manifest.vmi);
  node.controller.events.on('step', (event) => {
    if (event.key === key) progress.step(event.what);
  });
  await node.admit(manifest, { keep: false });
  return await new Run(request, node, key, { progress, interrupts }).toTheEnd();
}
