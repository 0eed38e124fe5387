import type { Fields } from '../emulate/schema/release-schema.ts';
import type { Findings } from './findings.ts';
import { CODE, type ProbeAnswer, type ProbePeer } from './peer.ts';
import { askInfo, askNonsense } from './questions.ts';

const NOTIFY = '/kubevirt.notify.v1.Notify/';
const NOTIFY_INFO = '/kubevirt.notify.info.NotifyInfo/Info';
const LIMIT_MS = 5_000;
const DOMAIN_EVENT = 'HandleDomainEvent';
const K8S_EVENT = 'HandleK8sEvent';
/** A VM that no cluster has. */
const NOBODY = { namespace: 'virtwire-probe', name: 'nobody', uid: '00000000-0000-4000-8000-000000000000' };

type Vm = EventSubject['vm'];

interface Case {
  readonly rpc: string;
  readonly label: string;
  readonly request: Fields;
  /** The VM that a sound event is about: the pipe of another VM refuses it. */
  readonly about?: Vm;
  /** The words of a refusal; undefined for an event that has to be taken. */
  readonly refused?: RegExp;
  readonly mayRefuse?: RegExp;
}

const k8sEvent = (vm: Vm): string =>
  JSON.stringify({
    metadata: {},
    involvedObject: { kind: 'VirtualMachineInstance', apiVersion: 'kubevirt.io/v1', ...vm },
    ...{ reason: 'Probe', message: 'sent by virtwire compat probe', type: 'Normal' },
    ...{ source: {}, firstTimestamp: null, lastTimestamp: null, eventTime: null },
    ...{ reportingComponent: '', reportingInstance: '' },
  });

/** Events that are refused or dropped: they have no effect. @source wire.md 7; captures v1.9.0/notify-server */
const HARMLESS: readonly Case[] = [
  { rpc: DOMAIN_EVENT, label: 'an event of an unknown type', request: { eventType: 'PROBE' } },
  {
    ...{ rpc: DOMAIN_EVENT, label: 'a domain that is no JSON', refused: /./ },
    request: { eventType: 'MODIFIED', domainJSON: '{"Spec":' },
  },
  {
    ...{ rpc: DOMAIN_EVENT, label: 'a domain with a wrong type', refused: /./ },
    request: { eventType: 'MODIFIED', domainJSON: '{"Spec":{"Memory":{"Value":"x"}}}' },
  },
  {
    rpc: K8S_EVENT,
    label: 'an event that is no JSON',
    request: { eventJSON: '{"x":' },
    refused: /^Error unmarshalling k8s event: /,
  },
  {
    rpc: K8S_EVENT,
    label: 'an event of an unknown VM',
    about: NOBODY,
    request: { eventJSON: k8sEvent(NOBODY) },
    refused: /^VMI not found$/,
  },
];

/** Events that a handler acts upon. */
function effective(domain: string, vm: Vm): readonly Case[] {
  const statusJSON = JSON.stringify({ metadata: {}, status: 'Failure', message: 'Libvirt reconnect, domain' });
  const tell = (label: string, eventType: string): Case => {
    return { ...{ rpc: DOMAIN_EVENT, label, about: vm }, request: { eventType, domainJSON: domain } };
  };
  return [
    tell('ADDED', 'ADDED'),
    tell('MODIFIED', 'MODIFIED'),
    tell('the same once more', 'MODIFIED'),
    tell('DELETED', 'DELETED'),
    { rpc: DOMAIN_EVENT, label: 'ERROR', request: { eventType: 'ERROR', statusJSON } },
    {
      ...{ rpc: K8S_EVENT, label: 'an event of the VM', about: vm, mayRefuse: /^VMI not found$/ },
      request: { eventJSON: k8sEvent(vm) },
    },
  ];
}

/** How virtwire's handler refuses an event that is not about the VM of the pipe that it came by. */
const FOREIGN = /^this pipe belongs to (\S+) \((\S+)\), not to (\S+) \((\S*)\)$/;

/** The VM whose pipe refuses an event about another one; undefined for other words, or if it is that very VM. */
function ownerOfPipe(text: string, about: Vm | undefined): string | undefined {
  const [, owner = '', ownerUid = '', key, uid] = FOREIGN.exec(text) ?? [];
  if (about === undefined || key !== `${about.namespace}/${about.name}` || uid !== about.uid) return undefined;
  return owner === key && ownerUid === uid ? undefined : `${owner} (${ownerUid})`;
}

interface Judgement {
  readonly isGood: boolean;
  readonly what: string;
}

const deviation = (what: string): Judgement => ({ isGood: false, what: `: ${what}` });

function judgeRefusal({ refused, mayRefuse, about }: Case, text: string): Judgement {
  const expected = refused ?? mayRefuse;
  if (expected?.test(text) === true) return { isGood: true, what: '' };
  const owner = ownerOfPipe(text, about);
  if (owner !== undefined) return { isGood: true, what: `: refused as it should be, the pipe belongs to ${owner}` };
  return deviation(expected === undefined ? `it refuses: ${text}` : `it refuses with other words: ${text}`);
}

function judge(one: Case, { code, details, outcome, flaw }: ProbeAnswer): Judgement {
  if (flaw !== undefined) return deviation(flaw);
  if (code === CODE.deadline) return deviation('it gives no answer in time');
  if (code !== CODE.ok) return deviation(`it answers gRPC code ${code}: ${details}`);
  if (outcome?.success !== true) return judgeRefusal(one, outcome?.message ?? '');
  return one.refused === undefined ? { isGood: true, what: '' } : deviation('it takes it, and has to refuse');
}

async function runCases(peer: ProbePeer, findings: Findings, cases: readonly Case[]): Promise<void> {
  for (const one of cases) {
    const { rpc, label, request } = one;
    const answer = await peer.call(`${NOTIFY}${rpc}`, request, LIMIT_MS);
    if (answer.code === CODE.unimplemented) {
      findings.missing(rpc, answer.details);
      continue;
    }
    const { isGood, what } = judge(one, answer);
    if (isGood) findings.good(rpc, label + what);
    else findings.bad(rpc, label + what);
  }
}

/** Who an event is about, with the domain of that VM. */
export interface EventSubject {
  readonly domain: string;
  readonly vm: { readonly namespace: string; readonly name: string; readonly uid: string };
}

/** Plays a launcher. Without a subject, only events are sent that are refused or dropped. */
export async function tellEvents(
  peer: ProbePeer,
  findings: Findings,
  subject: EventSubject | undefined,
): Promise<void> {
  await askInfo(peer, findings, NOTIFY_INFO);
  await askNonsense(peer, findings, 'kubevirt.notify.v1.Notify', `${NOTIFY}${DOMAIN_EVENT}`);
  await runCases(peer, findings, HARMLESS);
  if (subject !== undefined) await runCases(peer, findings, effective(subject.domain, subject.vm));
}
