import { connect } from '../src/index.ts';
import type { Connection, DomainEvent } from '../src/index.ts';
import { tinyDomainXml } from '../src/testing/index.ts';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { eventually } from './harness.ts';
import type { Harness, HarnessKind } from './harness.ts';

/** One daemon for a group of tests; each test gets a fresh connection and leaves no domain. */
export interface Fixture {
  readonly harness: Harness;
  /** A connection that ends with the test. */
  connect(changes?: Parameters<typeof connect>[0]): Promise<Connection>;
}

/** Starts the daemon before the group's tests and cleans up after each. */
export function useDaemon(kind: HarnessKind): Fixture {
  let harness: Harness | undefined;
  const connections: Connection[] = [];
  beforeAll(async () => {
    harness = await kind.start();
  });
  afterEach(async () => {
    if (harness !== undefined) await removeDomains(harness);
    for (const connection of connections.splice(0)) await connection.close();
  });
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]();
  });
  const running = (): Harness => {
    if (harness === undefined) throw new Error('the daemon did not start');
    return harness;
  };
  return {
    get harness() {
      return running();
    },
    connect: async (changes = {}) => {
      const all = typeof changes === 'string' ? { uri: changes } : changes;
      const connection = await connect({ ...running().connectOptions, ...all });
      connections.push(connection);
      return connection;
    },
  };
}

async function removeDomains(harness: Harness): Promise<void> {
  await using connection = await connect(harness.connectOptions);
  for (const domain of await connection.listAllDomains()) {
    // A daemon that has just been restarted may be finding out that the guest is gone.
    if (await domain.isActive()) await domain.destroy().catch(() => undefined);
    await domain.undefine().catch(() => undefined);
  }
}

/** XML of a test domain. */
export function domainXml(name: string, more: Partial<Parameters<typeof tinyDomainXml>[0]> = {}): string {
  return tinyDomainXml({ name, ...more });
}

/** What was recorded so far; `next` waits for that many more and takes them out. */
export class Recording<T> {
  readonly #seen: T[] = [];

  readonly add = (one: T): void => {
    this.#seen.push(one);
  };

  get all(): readonly T[] {
    return this.#seen;
  }

  async next(count: number): Promise<T[]> {
    await eventually(`${String(count)} events, have ${JSON.stringify(this.#seen)}`, () => this.#seen.length >= count);
    return this.#seen.splice(0);
  }
}

/** Records lifecycle events as `NAME event/detail`. */
export async function recordLifecycle(connection: Connection): Promise<Recording<string>> {
  const seen = new Recording<string>();
  await connection.onDomainEvent('lifecycle', (event: DomainEvent<'lifecycle'>) => {
    seen.add(`${event.domain.name} ${String(event.event)}/${String(event.detail)}`);
  });
  return seen;
}
