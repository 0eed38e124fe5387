import { expect, test } from 'vitest';
import { newDomain } from './domain-document.ts';
import { applyObserved, decideEventType, startsTargetMonitor } from './decide-event.ts';
import type { DomainEvent } from './domain-event.ts';

const gone = { state: undefined, spec: undefined };
const event = (id: number, detail: number): DomainEvent => ({
  domainName: 'ns_vm',
  lifecycle: { event: id, detail },
});
const deletion = (of: DomainEvent): unknown =>
  applyObserved(newDomain('ns_vm', 'u'), gone, of, 'u', 0).ObjectMeta.deletionTimestamp;

test('FM-2.9 a domain that is gone because it moved is not marked as deleted', () => {
  expect(deletion(event(5, 3))).toBeUndefined();
  expect(applyObserved(newDomain('ns_vm', 'u'), gone, event(5, 3), 'u', 0).Status).toMatchObject({
    Status: 'NoState',
    Reason: 'NonExistent',
  });
});

test('an undefined domain is marked as deleted', () => {
  expect(deletion(event(1, 0))).toBe('1970-01-01T00:00:00Z');
});

test('FM-2.9 a job that completed after the domain moved away is told like any other', () => {
  const completed = { domainName: 'ns_vm', job: new Map([['operation', 5]]) };
  expect(decideEventType(completed)).toBe('MODIFIED');
  expect(decideEventType({ ...completed, job: new Map([['operation', 9]]) })).toBe('ADDED');
});

test.each([
  ['defined and added', event(0, 0), 'ADDED'],
  ['defined and updated', event(0, 1), 'MODIFIED'],
  ['started by a migration', event(2, 1), 'ADDED'],
  ['started by a boot', event(2, 0), 'MODIFIED'],
  ['a device event', { domainName: 'ns_vm' }, 'MODIFIED'],
])('%s', (_title, given, type) => {
  expect(decideEventType(given)).toBe(type);
});

test('only a resume by migration and a pause start the watch of an incoming migration', () => {
  expect([event(4, 1), event(3, 0)].map(startsTargetMonitor)).toEqual([true, true]);
  expect([event(4, 0), event(3, 2), event(2, 1), undefined].map(startsTargetMonitor)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
