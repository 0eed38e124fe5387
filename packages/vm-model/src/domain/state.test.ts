import { expect, test } from 'vitest';
import { isDomainDown, lifeCycleOf, reasonOf } from './state.ts';

test('every libvirt state has its text, an unknown one none', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 7, 8, -1].map(lifeCycleOf)).toEqual([
    'NoState',
    'Running',
    'Blocked',
    'Paused',
    'ShuttingDown',
    'Shutoff',
    'Crashed',
    'PMSuspended',
    '',
    '',
  ]);
});

test.each([
  ['Running', 5, 'Unknown'],
  ['NoState', 0, 'Unknown'],
  ['ShuttingDown', 1, 'User'],
  ['Shutoff', 1, 'Shutdown'],
  ['Shutoff', 6, 'Failed'],
  ['Shutoff', 8, ''],
  ['Crashed', 1, 'Panicked'],
  ['Paused', 5, 'IOError'],
  ['Paused', 13, 'PostcopyFailed'],
  ['Paused', 14, ''],
] as const)('%s for reason %d is %s', (state, reason, text) => {
  expect(reasonOf(state, reason)).toBe(text);
});

test('paused, blocked and suspended domains are not down', () => {
  const all = ['NoState', 'Running', 'Blocked', 'Paused', 'ShuttingDown', 'Shutoff', 'Crashed', 'PMSuspended'] as const;
  expect(all.filter(isDomainDown)).toEqual(['NoState', 'ShuttingDown', 'Shutoff', 'Crashed']);
});
