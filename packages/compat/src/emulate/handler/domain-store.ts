import { type Domain, domainName, parseJson, renderTime, type Vmi } from '@virtwire/vm-model';

import type { ReceivedEvent, VmIdentity } from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import type { Fields } from '../schema/release-schema.ts';
import { readDomain } from './domain-reader.ts';

/** The newest events are kept. */
const MAX_EVENTS = 2_000;

/** What the answer to an event is. */
export interface EventAnswer {
  readonly success: boolean;
  readonly message: string;
  /** The process ends over the event, after the answer. */
  readonly isFatal: boolean;
}

const ACCEPTED: EventAnswer = { success: true, message: '', isFatal: false };

/** What an emulated handler knows of domains and VMIs. */
export class DomainStore {
  readonly events: ReceivedEvent[] = [];
  readonly #facts: LineFacts;
  readonly #domains = new Map<string, Domain>();
  readonly #vmis = new Map<string, Vmi>();
  #seq = 0;

  constructor(facts: LineFacts) {
    this.#facts = facts;
  }

  domain({ namespace, name }: Pick<VmIdentity, 'namespace' | 'name'>): Domain | undefined {
    return this.#domains.get(`${namespace}/${name}`);
  }

  keepVmi(vmi: Vmi): void {
    this.#vmis.set(`${vmi.metadata.namespace}/${vmi.metadata.name}`, vmi);
  }

  /** A domain document from GetDomain; empty text is no domain. */
  takeListed(text: string, identity: Pick<VmIdentity, 'namespace' | 'name'>): EventAnswer {
    if (text !== '') return this.#take('LISTED', text);
    this.forget(identity);
    return ACCEPTED;
  }

  forget({ namespace, name }: Pick<VmIdentity, 'namespace' | 'name'>): void {
    this.#domains.delete(`${namespace}/${name}`);
  }

  /** A launcher that does not answer while domains are listed. @source handler-core.md 23 */
  markUnreachable(identity: VmIdentity): void {
    if (this.#facts.handler.unreachableInList.value === 'dropped') return this.forget(identity);
    const { namespace, name, uid } = identity;
    const Spec = { Memory: { Value: 9, Unit: 'MB' }, OS: { Type: {} }, Devices: {}, CPU: {} };
    this.#domains.set(`${namespace}/${name}`, {
      ObjectMeta: { namespace, name, uid, creationTimestamp: renderTime(Date.now()) },
      Spec: { ...Spec, Name: domainName(namespace, name), Metadata: { KubeVirt: { UID: uid } } },
      Status: { Status: 'Unknown', OSInfo: {}, FSFreezeStatus: {} },
    });
  }

  /** @source wire.md 7 HandleDomainEvent */
  takeDomainEvent(request: Fields): EventAnswer {
    const type = textOf(request['eventType']);
    const [domainText, statusText] = [textOf(request['domainJSON']), textOf(request['statusJSON'])];
    if (statusText !== '') {
      const problem = jsonProblem(statusText);
      if (problem !== undefined) return this.#refuse('domain', type, problem);
    }
    if (domainText !== '') return this.#take(type, domainText);
    this.#add({ kind: 'domain', type, accepted: true, error: undefined, domain: undefined });
    return ACCEPTED;
  }

  /** @source wire.md 7 HandleK8sEvent */
  takeK8sEvent(request: Fields): EventAnswer {
    const text = textOf(request['eventJSON']);
    const problem = jsonProblem(text);
    if (problem !== undefined) return this.#refuse('k8s', '', `Error unmarshalling k8s event: ${problem}`);
    const event = JSON.parse(text) as { readonly involvedObject?: Partial<VmIdentity>; readonly reason?: string };
    const { namespace = '', name = '', uid = '' } = event.involvedObject ?? {};
    const vmi = this.#vmis.get(`${namespace}/${name}`);
    if (vmi?.metadata.uid !== uid) return this.#refuse('k8s', event.reason ?? '', 'VMI not found');
    this.#add({ kind: 'k8s', type: event.reason ?? '', accepted: true, error: undefined, domain: undefined });
    return ACCEPTED;
  }

  #take(type: string, text: string): EventAnswer {
    const read = readDomain(text, this.#facts.line);
    if (read.kind === 'refused') return this.#refuse('domain', type, read.reason);
    const domain = read.kind === 'domain' ? (read.domain as unknown as Fields) : undefined;
    if (read.kind === 'crash') {
      this.#add({ kind: 'domain', type, accepted: false, error: `the handler crashes on ${read.reason}`, domain });
      return { ...ACCEPTED, isFatal: true };
    }
    this.#add({ kind: 'domain', type, accepted: true, error: undefined, domain });
    // Types that no release knows are taken and dropped.
    if (['ADDED', 'MODIFIED', 'DELETED', 'LISTED'].includes(type)) this.#keep(type, read.domain);
    return ACCEPTED;
  }

  #keep(type: string, domain: Domain): void {
    const { namespace = '', name = '' } = domain.ObjectMeta;
    if (type === 'DELETED') this.forget({ namespace, name });
    else this.#domains.set(`${namespace}/${name}`, domain);
  }

  #refuse(kind: ReceivedEvent['kind'], type: string, message: string): EventAnswer {
    this.#add({ kind, type, accepted: false, error: message, domain: undefined });
    return { success: false, message, isFatal: false };
  }

  #add(event: Omit<ReceivedEvent, 'seq'>): void {
    this.#seq++;
    this.events.push({ seq: this.#seq, ...event });
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  return typeof value === 'string' ? value : '';
}

/** @returns Go's words for text that is no JSON. */
function jsonProblem(text: string): string | undefined {
  try {
    parseJson(text);
    return undefined;
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}
