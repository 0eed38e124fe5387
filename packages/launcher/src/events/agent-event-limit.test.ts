import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createAgentEventLimit } from './agent-event-limit.ts';
import type { DomainEvent } from './domain-event.ts';

const agent = (state: number): DomainEvent => ({ domainName: 'ns_vm', agent: { state, reason: 2 } });
const suspended: DomainEvent = { domainName: 'ns_vm', lifecycle: { event: 3, detail: 0 } };

function start() {
  const clock = createFakeClock(0);
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const got: string[] = [];
  const deliver = (event: DomainEvent): void => void got.push(`${clock.now()} ${event.agent?.state ?? 'other'}`);
  const log = createLogger('virt-launcher', { destination: { write } });
  return { clock, lines, got, push: createAgentEventLimit({ clock, log, deliver }) };
}

test('FM-11.4 an agent that comes and goes all the time is told of once a second, its last state always', async () => {
  const { clock, lines, got, push } = start();
  for (let ms = 0; ms < 60_000; ms += 10) {
    push(agent(1));
    push(agent(2));
    await clock.advance(10);
  }
  push(agent(1));
  await clock.advance(5_000);
  expect(got.length).toBeLessThanOrEqual(10 + 61);
  expect(got.at(-1)).toMatch(/ 1$/);
  expect(lines).toHaveLength(1);
  push(agent(2));
  expect(got.at(-1)).toBe('65000 2');
});

test('a few of them, and all other events, pass at once', async () => {
  const { clock, got, push } = start();
  for (let i = 0; i < 10; i++) push(agent((i % 2) + 1));
  for (let i = 0; i < 50; i++) push(suspended);
  expect(got).toHaveLength(60);
  await clock.advance(3_600_000);
  for (let i = 0; i < 10; i++) push(agent(1));
  expect(got).toHaveLength(70);
});
