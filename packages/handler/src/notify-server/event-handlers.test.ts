import { renderDomainJson } from '@virtwire/vm-model';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDomainStore } from '../domain-watch/domain-store.ts';
import { sampleDomain, sampleVmi } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { createEventHandlers } from './event-handlers.ts';

const identity = { namespace: 'ns1', name: 'vm1', uid: 'uid-1' };
const bytes = (text: string): Uint8Array => Buffer.from(text);
const context = (of: typeof identity | undefined) => ({ identity: of, signal: new AbortController().signal });

function setUp(phase: 'Scheduled' | 'Running' = 'Running') {
  const store = createDomainStore();
  const recorded: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const handlers = createEventHandlers({
    store,
    getVmi: (key) => (key === 'ns1/vm1' ? sampleVmi(phase) : undefined),
    events: { event: (_object, type, reason) => recorded.push(`${type} ${reason}`) },
    log: recordedLog(lines),
  });
  const domainEvent = (text: string, eventType = 'MODIFIED', of: typeof identity | undefined = identity) =>
    handlers.handleDomainEvent({ domainJSON: bytes(text), statusJSON: bytes(''), eventType }, context(of));
  const k8sEvent = (event: unknown, of: typeof identity | 'nobody' = identity) =>
    handlers.handleK8sEvent(
      { eventJSON: bytes(typeof event === 'string' ? event : JSON.stringify(event)) },
      context(of === 'nobody' ? undefined : of),
    );
  return { store, recorded, lines, handlers, domainEvent, k8sEvent };
}

const running = renderDomainJson(sampleDomain('Running'));

test('domain events reach the store, in both directions', async () => {
  const { store, domainEvent } = setUp();
  expect(await domainEvent(running, 'ADDED')).toBeUndefined();
  expect(store.fact('ns1/vm1').state).toBe('present');
  await domainEvent(running, 'DELETED');
  expect(store.fact('ns1/vm1').state).toBe('absent');
});

test('FM-1.4 bad JSON is answered with success false, whatever the bytes', async () => {
  const { store, domainEvent, k8sEvent } = setUp();
  expect(await domainEvent('{"ObjectMeta":')).toMatchObject({ success: false });
  const answer = (await k8sEvent('nonsense')) as { success: boolean; message: string };
  expect(answer.success).toBe(false);
  expect(answer.message).toMatch(/^Error unmarshalling k8s event: /);
  await fc.assert(
    fc.asyncProperty(fc.string(), async (text) => {
      expect(await domainEvent(`x${text}`)).toMatchObject({ success: false });
    }),
    { numRuns: 50 },
  );
  expect(store.keys()).toEqual([]);
});

test('an event from before the start is not believed by a handler that has not heard the launcher yet', async () => {
  const { store, domainEvent } = setUp('Running');
  const defined = renderDomainJson(sampleDomain('Shutoff', 'Unknown'));
  expect(await domainEvent(defined, 'ADDED')).toBeUndefined();
  expect(store.get('ns1/vm1')).toBeUndefined();
});

test('an event from before the start that arrives while the VM runs does not end it', async () => {
  const { store, domainEvent } = setUp('Scheduled');
  const defined = renderDomainJson(sampleDomain('Shutoff', 'Unknown'));
  await domainEvent(defined, 'ADDED');
  expect(store.get('ns1/vm1')?.Status.Status).toBe('Shutoff');
  await domainEvent(running);
  expect(await domainEvent(defined, 'ADDED')).toBeUndefined();
  expect(store.get('ns1/vm1')?.Status.Status).toBe('Running');
  await domainEvent(renderDomainJson(sampleDomain('Shutoff', 'Shutdown')));
  expect(store.get('ns1/vm1')?.Status.Reason).toBe('Shutdown');
});

test('an event without a UID belongs to the VMI of its pipe, and is no stranger that has to be cleaned up', async () => {
  const { store, domainEvent } = setUp();
  const early = sampleDomain('Running');
  early.Spec.Metadata.KubeVirt = {};
  await domainEvent(renderDomainJson(early));
  expect(store.get('ns1/vm1')?.Spec.Metadata.KubeVirt.UID).toBe('uid-1');
  early.Status = { ...early.Status, Status: 'Shutoff', Reason: 'Unknown' };
  await domainEvent(renderDomainJson(early), 'ADDED');
  expect(store.get('ns1/vm1')?.Status.Status).toBe('Running');
});

test('FM-2.3 an ERROR event is only logged, with the name of its VM', async () => {
  const { store, lines, handlers } = setUp();
  const request = { domainJSON: bytes(''), statusJSON: bytes('{"message":"lost"}'), eventType: 'ERROR' };
  expect(await handlers.handleDomainEvent(request, context(identity))).toBeUndefined();
  expect(store.keys()).toEqual([]);
  expect(lines.find((line) => line['level'] === 'error')).toMatchObject({
    msg: 'Domain error event with message: lost',
    name: 'vm1',
  });
});

test('an unknown type is ignored with success', async () => {
  const { store, domainEvent } = setUp();
  expect(await domainEvent(running, 'modified')).toBeUndefined();
  expect(store.keys()).toEqual([]);
});

test('FM-13.4 events of another VM than the pipe belongs to are refused and logged', async () => {
  const { store, recorded, lines, domainEvent, k8sEvent } = setUp();
  const other = { ...identity, name: 'vm2' };
  const reborn = { ...identity, uid: 'uid-2' };
  expect(await domainEvent(running, 'MODIFIED', other)).toMatchObject({ success: false });
  expect(await domainEvent(running, 'MODIFIED', reborn)).toMatchObject({ success: false });
  const event = { involvedObject: { namespace: 'ns1', name: 'vm1', uid: 'uid-1' }, type: 'Warning', reason: 'X' };
  expect(await k8sEvent(event, other)).toMatchObject({ success: false });
  expect(store.keys()).toEqual([]);
  expect(recorded).toEqual([]);
  expect(lines.filter((line) => line['level'] === 'warning')).toHaveLength(3);
});

test('Kubernetes events are recorded for a VMI that is known, by its UID', async () => {
  const { recorded, k8sEvent } = setUp();
  const event = (uid: string, name = 'vm1') => ({
    involvedObject: { namespace: 'ns1', name, uid },
    type: 'Warning',
    reason: 'IOerror',
    message: 'm',
  });
  expect(await k8sEvent(event('uid-1'), 'nobody')).toBeUndefined();
  expect(await k8sEvent(event('uid-2'), 'nobody')).toMatchObject({ success: false, message: 'VMI not found' });
  expect(await k8sEvent(event('uid-1', 'vm9'), 'nobody')).toMatchObject({ success: false, message: 'VMI not found' });
  expect(recorded).toEqual(['Warning IOerror']);
});
