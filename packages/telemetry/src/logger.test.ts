import { expect, test } from 'vitest';
import { createLogger } from './logger.ts';
import { objectFields } from './object-fields.ts';
import { startSpan } from './span.ts';

function capture(verbosity?: number) {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = createLogger('virt-handler', { destination, ...(verbosity === undefined ? {} : { verbosity }) });
  return { log, lines };
}

const here = expect.stringMatching(/^logger\.test\.ts:\d+$/) as string;
const microseconds = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string;

test('a line carries the keys of KubeVirt and the place that logged it', () => {
  const { log, lines } = capture();
  log.info('hostname node1');
  expect(lines).toEqual([
    { component: 'virt-handler', level: 'info', msg: 'hostname node1', pos: here, timestamp: microseconds },
  ]);
});

test('a line about an object names it, and a child logger finds its own caller', () => {
  const { log, lines } = capture();
  const vmi = { metadata: { name: 'vm1', namespace: 'ns1', uid: 'u1' } };
  log.child(objectFields(vmi)).warn({ reason: new Error('no socket') }, 'retrying');
  expect(lines[0]).toMatchObject({
    level: 'warning',
    kind: '',
    name: 'vm1',
    namespace: 'ns1',
    uid: 'u1',
    reason: 'no socket',
    pos: here,
  });
});

test('the place of a line and of a span can be that of the source of a bundle', () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger('virt-launcher', {
    destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    resolvePosition: (place) => place.replace(/^logger\.test\.ts:\d+:\d+$/, 'source.ts:7'),
  });
  log.info('hello');
  log.error(new Error('boom'), 'stopped');
  log.warn({ reason: 'late' }, 'slow');
  startSpan(log, 'define').end();
  expect(lines.map(({ pos }) => pos)).toEqual(Array.from(lines, () => 'source.ts:7'));
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    ['hello', undefined],
    ['stopped', 'boom'],
    ['slow', 'late'],
    ['define', undefined],
  ]);
});

test('an empty namespace is left out', () => {
  expect(objectFields({ metadata: { name: 'node1', namespace: '' } })).toEqual({ kind: '', name: 'node1', uid: '' });
});

test('an error as the only argument becomes the reason', () => {
  const { log, lines } = capture();
  log.error(new Error('boom'), 'stopped');
  expect(lines[0]).toMatchObject({ level: 'error', reason: 'boom', msg: 'stopped', pos: here });
});

test.each([
  [2, []],
  [3, ['debug']],
  [4, ['debug', 'trace']],
])('verbosity %i shows %j, at level info', (verbosity, shown) => {
  const { log, lines } = capture(verbosity);
  log.debug('debug');
  log.trace('trace');
  expect(lines.map((l) => l['msg'])).toEqual(shown);
  expect(lines.every((l) => l['level'] === 'info')).toBe(true);
});

test('a span writes one line, with its length and the place that started it', () => {
  const { log, lines } = capture();
  const span = startSpan(log, 'network phase 1');
  span.end({ spawns: 2 });
  span.end();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ msg: 'network phase 1', spawns: 2, pos: here });
  expect(lines[0]?.['durationMs']).toEqual(expect.any(Number));
});

test('a failed span says why', () => {
  const { log, lines } = capture();
  startSpan(log, 'define').fail(new Error('no such machine'));
  expect(lines[0]).toMatchObject({ level: 'warning', msg: 'define', reason: 'no such machine' });
});
