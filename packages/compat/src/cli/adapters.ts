import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SharedVmiStore } from '@virtwire/handler';
import type { Vmi } from '@virtwire/vm-model';
import { parseFlags } from '@virtwire/launcher';
import { CompatError } from '../errors.ts';
import { LIBVIRT_VARIABLE } from '../matrix/command-launcher.ts';
import { HANDLER_VARIABLE } from '../matrix/handler-lines.ts';
import type { FromHandler, HandlerSettings, ToHandler } from '../matrix/handler-lines.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { runLauncherProcess } from '../matrix/our-launcher.ts';
import type { CompatProcess } from './process.ts';
import { untilTold } from './until-told.ts';

const LOOK_EVERY_MS = 20;

interface Pending {
  readonly resolve: (vmi: Vmi) => void;
  readonly reject: (error: Error) => void;
}

/** VMIs that the other end of a pair of pipes keeps. */
class RemoteStore implements SharedVmiStore {
  readonly #say: (line: FromHandler) => void;
  readonly #vmis = new Map<string, Vmi>();
  readonly #listeners = new Set<(key: string) => void>();
  readonly #pending = new Map<number, Pending>();
  #last = 0;

  constructor(say: (line: FromHandler) => void) {
    this.#say = say;
  }

  list(): readonly Vmi[] {
    return structuredClone([...this.#vmis.values()]);
  }

  get(key: string): Vmi | undefined {
    return structuredClone(this.#vmis.get(key));
  }

  update(vmi: Vmi): Promise<Vmi> {
    this.#last += 1;
    const update = this.#last;
    return new Promise((resolve, reject) => {
      this.#pending.set(update, { resolve, reject });
      this.#say({ update, vmi });
    });
  }

  watch(listener: (key: string) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  take(line: ToHandler): void {
    if ('put' in line) {
      const key = `${line.put.metadata.namespace}/${line.put.metadata.name}`;
      this.#vmis.set(key, line.put);
      this.#tell(key);
    } else if ('remove' in line) {
      this.#vmis.delete(line.remove);
      this.#tell(line.remove);
    } else this.#settle(line);
  }

  #settle(line: Extract<ToHandler, { answer: number }>): void {
    const pending = this.#pending.get(line.answer);
    this.#pending.delete(line.answer);
    if ('vmi' in line) pending?.resolve(line.vmi);
    else pending?.reject(Object.assign(new Error(line.message), { code: line.code }));
  }

  #tell(key: string): void {
    for (const listener of this.#listeners) listener(key);
  }
}

/** Runs virtwire's handler as a command under test of another version's matrix. */
export async function runHandlerAdapter(io: CompatProcess): Promise<number> {
  const json = io.env[HANDLER_VARIABLE];
  if (json === undefined)
    throw new CompatError('BadOption', `${HANDLER_VARIABLE} is not set: start this from a matrix`);
  const { nodeName, resyncMs, ...dirs } = JSON.parse(json) as HandlerSettings;
  const say = (line: FromHandler): void => io.line(JSON.stringify(line));
  const store = new RemoteStore(say);
  const lines = createInterface({ input: io.input });
  lines.on('line', (line) => store.take(JSON.parse(line) as ToHandler));
  const handler = await startOurHandler({
    ...{ nodeName, resyncMs, dirs, store },
    log: (line) => io.error(line.trimEnd()),
    onEvent: (event) => say({ event }),
  });
  say({ ready: true, missingParts: handler.missingParts ?? [] });
  await untilTold(io);
  lines.close();
  await handler.stop();
  return 0;
}

/** Runs virtwire's launcher, without a libvirt daemon of its own, as a command under test of another version's matrix. */
export async function runLauncherAdapter(argv: readonly string[], io: CompatProcess): Promise<number> {
  const libvirtSocket = io.env[LIBVIRT_VARIABLE];
  if (libvirtSocket === undefined) {
    throw new CompatError('BadOption', `${LIBVIRT_VARIABLE} is not set: start this from a matrix`);
  }
  const launcher = await runLauncherProcess(parseFlags(argv), libvirtSocket, (line) => io.error(line.trimEnd()));
  void untilTold(io).then(() => launcher.terminate());
  while (!launcher.hasEnded) await sleep(LOOK_EVERY_MS);
  return 0;
}
