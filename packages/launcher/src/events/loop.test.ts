import { createLogger } from '@virtwire/telemetry';
import { emptyDomain } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import type { DomainEvent } from './domain-event.ts';
import { AGENT_QUEUE_LIMIT, createEventLoop, QUEUE_LIMIT } from './loop.ts';
import type { EventLoop } from './loop.ts';
import type { EventProcessor, ProcessedEvent } from './processor.ts';

const name = 'ns_vm';
const resumed: DomainEvent = { domainName: name, lifecycle: { event: 4, detail: 0 } };
const crashed: DomainEvent = { domainName: name, lifecycle: { event: 8, detail: 0 } };

interface Harness {
  readonly loop: EventLoop;
  readonly clock: ReturnType<typeof createFakeClock>;
  readonly metadata: ReturnType<typeof createMetadataCache>;
  readonly processed: (DomainEvent | undefined)[];
  /** What the processor answers next; delivered when empty. */
  readonly outcomes: ('lost' | 'unknown')[];
  readonly ending: AbortController;
}

function start(hold?: Promise<void>): Harness {
  const clock = createFakeClock(0);
  const metadata = createMetadataCache();
  const processed: (DomainEvent | undefined)[] = [];
  const outcomes: ('lost' | 'unknown')[] = [];
  const processor: EventProcessor = {
    async process(base, _name, event): Promise<ProcessedEvent | undefined> {
      processed.push(event);
      await hold;
      const outcome = outcomes.shift();
      if (outcome === 'unknown') return undefined;
      return { domain: { ...emptyDomain(), ...base }, eventType: 'MODIFIED', isDelivered: outcome !== 'lost' };
    },
  };
  const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
  const loop = createEventLoop(
    { processor, metadata, clock, log, onHandled: () => undefined, onTold: () => undefined },
    'uid',
  );
  const ending = new AbortController();
  void loop.run(ending.signal);
  return { loop, clock, metadata, processed, outcomes, ending };
}

test('events are handled one at a time, in the order of their arrival', async () => {
  const { loop, clock, processed } = start();
  const events = Array.from({ length: 5 }, (_, i) => ({ ...resumed, lifecycle: { event: 4, detail: i } }));
  events.forEach((event) => loop.push(event));
  await clock.settle();
  expect(processed).toEqual(events);
});

test('while one event is held up, looks at the domain are limited, but a crash is never dropped', async () => {
  const held = Promise.withResolvers<undefined>();
  const { loop, clock, processed } = start(held.promise.then(() => undefined));
  loop.push(resumed);
  await clock.settle();
  for (let i = 0; i < QUEUE_LIMIT + 5; i++) loop.push(resumed);
  loop.push(crashed);
  held.resolve(undefined);
  await clock.settle();
  await clock.settle();
  expect(processed.filter((event) => event === resumed).length).toBe(1 + QUEUE_LIMIT);
  expect(processed.at(-1)).toBe(crashed);
});

test('a metadata change that comes while an event is handled gives one more message; two give one', async () => {
  const { loop, clock, metadata, processed } = start();
  loop.push(resumed);
  await clock.settle();
  metadata.gracePeriod.store({ MarkedForGracefulShutdown: true });
  metadata.gracePeriod.store({ MarkedForGracefulShutdown: true });
  await clock.settle();
  expect(processed).toEqual([resumed, undefined]);
});

test('a state that was lost is sent again a second later, until it gets through', async () => {
  const { loop, clock, processed, outcomes } = start();
  outcomes.push('lost', 'lost');
  loop.push(resumed);
  await clock.settle();
  expect(processed.length).toBe(1);
  await clock.advance(999);
  expect(processed.length).toBe(1);
  await clock.advance(1_001);
  expect(processed.length).toBe(3);
  await clock.advance(60_000);
  expect(processed.length).toBe(3);
});

test('a state that is owed while libvirt is gone does not spin', async () => {
  const { loop, clock, processed, outcomes } = start();
  outcomes.push('lost', ...Array.from({ length: 5 }, () => 'unknown' as const));
  loop.push(resumed);
  await clock.settle();
  await clock.advance(5_000);
  expect(processed.length).toBe(6);
});

test('while one event is held up, the agent poller waits before it fills memory, and nothing it told is lost', async () => {
  const held = Promise.withResolvers<undefined>();
  const { loop, clock, processed } = start(held.promise.then(() => undefined));
  loop.push(resumed);
  await clock.settle();
  let accepted = 0;
  for (let i = 0; i < AGENT_QUEUE_LIMIT + 5; i++) void loop.pushAgent({}).then(() => (accepted += 1));
  await clock.settle();
  expect(accepted).toBe(AGENT_QUEUE_LIMIT);
  held.resolve(undefined);
  await clock.settle();
  await clock.settle();
  expect(accepted).toBe(AGENT_QUEUE_LIMIT + 5);
  expect(processed.length).toBe(1 + AGENT_QUEUE_LIMIT + 5);
});

test('what libvirt told goes before what the agent told, which needs the domain that it is about', async () => {
  const held = Promise.withResolvers<undefined>();
  const { loop, clock, processed } = start(held.promise.then(() => undefined));
  loop.push(resumed);
  await clock.settle();
  void loop.pushAgent({});
  loop.push(crashed);
  held.resolve(undefined);
  await clock.settle();
  await clock.settle();
  expect(processed).toEqual([resumed, crashed, undefined]);
});
