import type { ParamValue } from '../domain/libvirt-port.ts';
import type { MigrationCalls, Unregister } from '../migration/libvirt-port.ts';
import type { ScriptedWorld } from './scripted-libvirt.ts';
import { answer, raise } from './scripted-libvirt.ts';
import type { ScriptedAnswer, TimelineEntry } from './vector-types.ts';

/** libvirt's words for a migration that was given up. */
const CANCELLED = {
  code: 78,
  domain: 10,
  message: 'operation aborted: migration out job: canceled by client',
} as const;

/** Migrations of the stand-in libvirt: what happens comes from the case's timeline. */
export interface ScriptedMigration {
  readonly calls: MigrationCalls;
  /** Plays the timeline; times count from now on. */
  play(timeline: readonly TimelineEntry[], onDeviceRemoved: () => void): Promise<void>;
}

/** Creates the stand-in's migrations. */
export function createScriptedMigration(world: ScriptedWorld): ScriptedMigration {
  return new TimelineMigration(world);
}

class TimelineMigration implements ScriptedMigration {
  readonly #world: ScriptedWorld;
  readonly #iterationListeners = new Set<() => void>();
  readonly #removalListeners = new Set<(alias: string) => void>();
  #finished: { readonly error?: ScriptedAnswer['error'] } | undefined;
  #return: (() => void) | undefined;
  readonly calls: MigrationCalls = {
    migrateToUri: (_domain, uri, params, flags) => this.#migrate({ uri, params, flags }),
    startPostCopy: () => this.#ask('MigrateStartPostCopy', { flags: 0 }),
    setMaxDowntime: (_domain, downtimeMs) => this.#ask('MigrateSetMaxDowntime', { flags: 0, downtimeMs }),
    onMigrationIteration: (_name, listener) =>
      this.#register('DomainEventMigrationIterationRegister', this.#iterationListeners, listener),
    onDeviceRemoved: (_name, listener) =>
      this.#register('VolatileDomainEventDeviceRemovedRegister', this.#removalListeners, listener),
  };

  constructor(world: ScriptedWorld) {
    this.#world = world;
    world.script.onAbort = () => this.#finish({ error: CANCELLED });
  }

  async play(timeline: readonly TimelineEntry[], onDeviceRemoved: () => void): Promise<void> {
    const { clock } = this.#world;
    const startMs = clock.now();
    for (const entry of timeline) {
      if (entry.atMs > 0) await clock.sleep(startMs + entry.atMs - clock.now());
      this.#apply(entry, onDeviceRemoved);
    }
  }

  #apply(entry: TimelineEntry, onDeviceRemoved: () => void): void {
    const { script, record } = this.#world;
    if (entry.job !== undefined) script.job = entry.job as Readonly<Record<string, ParamValue>>;
    if (entry.state !== undefined && script.domain !== null) {
      script.domain = { ...script.domain, state: entry.state[0], reason: entry.state[1] };
    }
    for (let i = 0; i < (entry.iterations ?? (entry.iteration === undefined ? 0 : 1)); i++) {
      record({ event: 'migration iteration', iteration: (entry.iteration ?? 0) + i });
      for (const listener of this.#iterationListeners) listener();
    }
    if (entry.deviceRemoved !== undefined) {
      for (const listener of this.#removalListeners) listener(entry.deviceRemoved);
      onDeviceRemoved();
    }
    if (entry.finish !== undefined) this.#finish(entry.finish);
  }

  async #ask(call: string, entry: Readonly<Record<string, unknown>>): Promise<void> {
    await answer(this.#world, call, entry);
  }

  /** Listeners of a registration that fails are told all the same, as the recording stand-in does. */
  async #register<L>(call: string, listeners: Set<L>, listener: L): Promise<Unregister> {
    listeners.add(listener);
    await answer(this.#world, call);
    return () => {
      listeners.delete(listener);
      return Promise.resolve();
    };
  }

  async #migrate(entry: Readonly<Record<string, unknown>>): Promise<void> {
    await answer(this.#world, 'MigrateToURI3', entry);
    if (this.#finished === undefined) await new Promise<void>((resolve) => (this.#return = resolve));
    const error = this.#finished?.error;
    if (error !== undefined) raise(error);
  }

  #finish(how: { readonly error?: ScriptedAnswer['error'] }): void {
    if (this.#finished !== undefined) return;
    this.#finished = how;
    this.#return?.();
  }
}
