import type { EmulatedHandler, RecordedCall } from '../../emulate/api.ts';
import { VM } from '../../matrix/test-vmi.ts';
import { check } from '../verdicts.ts';

type Json = Readonly<Record<string, unknown>>;

const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const asList = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(asObject) : []);

/** Types that a launcher of today sends; others make old handlers list all domains anew, or are never sent. */
const EVENT_TYPES: readonly unknown[] = ['ADDED', 'MODIFIED'];

/** Calls of the launcher to the notify server, by RPC. */
export function notifyCalls(handler: EmulatedHandler, rpc: string): readonly RecordedCall[] {
  return handler.calls.filter((call) => call.channel === 'notify' && call.rpc === rpc);
}

/** Domains of all events, as they came over the wire. */
export function sentDomains(handler: EmulatedHandler): readonly Json[] {
  return notifyCalls(handler, 'HandleDomainEvent').map(({ request }) => asObject(request['domainJSON']));
}

/** Whether a domain tells its handler that the pod is ended. */
export function hasMark(domain: Json | undefined): boolean {
  const metadata = asObject(asObject(domain?.['Spec'])['Metadata']);
  return asObject(asObject(metadata['KubeVirt'])['GracePeriod'])['MarkedForGracefulShutdown'] === true;
}

/** What would crash a handler written in Go, or be somebody else's domain. @source KubeVirt domain-json.md 3, 5 */
function checkDomain(domain: Json): void {
  const meta = asObject(domain['ObjectMeta']);
  const { name, namespace, uid, creationTimestamp, deletionTimestamp } = meta;
  check(name === VM.name && namespace === VM.namespace, `an event is about ${String(namespace)}/${String(name)}`);
  check(uid === VM.uid || deletionTimestamp !== undefined, `an event has UID ${String(uid)}`);
  check(creationTimestamp !== null, 'an event prints an unset creationTimestamp as null');
  const devices = asObject(asObject(domain['Spec'])['Devices']);
  for (const disk of asList(devices['Disks'])) check(disk['Alias'] !== null, 'an event has a disk with Alias null');
  for (const nic of asList(devices['Interfaces'])) {
    check(nic['Alias'] !== null, 'an event has an interface with Alias null');
    check(nic['MAC'] !== null, 'an event has an interface with MAC null');
  }
}

/** The handler lives, could read every event, and every event is as handlers of each release need it. */
export function checkPeace(handler: EmulatedHandler): void {
  const { process, crashReason } = handler.state;
  check(process !== 'crashed', `the handler crashed: ${crashReason ?? ''}`);
  const refused = handler.events.find((event) => !event.accepted);
  check(refused === undefined, `the handler refused event ${refused?.type}: ${refused?.error ?? ''}`);
  for (const { request, authority } of notifyCalls(handler, 'HandleDomainEvent')) {
    const { eventType } = request;
    check(EVENT_TYPES.includes(eventType), `the launcher sent an event of type ${String(eventType)}`);
    check(authority === 'localhost', `the authority of an event was ${authority}`);
  }
  for (const domain of sentDomains(handler)) checkDomain(domain);
}
