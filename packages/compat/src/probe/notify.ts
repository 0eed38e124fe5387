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

interface Case {
  readonly rpc: string;
  readonly label: string;
  readonly request: Fields;
  /** The words of a refusal; undefined for an event that has to be taken. */
  readonly refused?: RegExp;
  readonly mayRefuse?: RegExp;
}

const k8sEvent = (vm: { readonly namespace: string; readonly name: string; readonly uid: string }): string =>
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
    request: { eventJSON: k8sEvent(NOBODY) },
    refused: /^VMI not found$/,
  },
];

/** Events that a handler acts upon. */
function effective(domain: string, vm: typeof NOBODY): readonly Case[] {
  const statusJSON = JSON.stringify({ metadata: {}, status: 'Failure', message: 'Libvirt reconnect, domain' });
  return [
    { rpc: DOMAIN_EVENT, label: 'ADDED', request: { eventType: 'ADDED', domainJSON: domain } },
    { rpc: DOMAIN_EVENT, label: 'MODIFIED', request: { eventType: 'MODIFIED', domainJSON: domain } },
    { rpc: DOMAIN_EVENT, label: 'the same once more', request: { eventType: 'MODIFIED', domainJSON: domain } },
    { rpc: DOMAIN_EVENT, label: 'DELETED', request: { eventType: 'DELETED', domainJSON: domain } },
    { rpc: DOMAIN_EVENT, label: 'ERROR', request: { eventType: 'ERROR', statusJSON } },
    {
      ...{ rpc: K8S_EVENT, label: 'an event of the VM', mayRefuse: /^VMI not found$/ },
      request: { eventJSON: k8sEvent(vm) },
    },
  ];
}

function judge({ refused, mayRefuse }: Case, answer: ProbeAnswer): string | undefined {
  const { code, details, outcome, flaw } = answer;
  if (flaw !== undefined) return flaw;
  if (code === CODE.deadline) return 'it gives no answer in time';
  if (code !== CODE.ok) return `it answers gRPC code ${code}: ${details}`;
  const text = outcome?.message ?? '';
  if (outcome?.success === true) return refused === undefined ? undefined : 'it takes it, and has to refuse';
  const expected = refused ?? mayRefuse;
  if (expected === undefined) return `it refuses: ${text}`;
  return expected.test(text) ? undefined : `it refuses with other words: ${text}`;
}

async function runCases(peer: ProbePeer, findings: Findings, cases: readonly Case[]): Promise<void> {
  for (const one of cases) {
    const { rpc, label, request } = one;
    const answer = await peer.call(`${NOTIFY}${rpc}`, request, LIMIT_MS);
    if (answer.code === CODE.unimplemented) {
      findings.missing(rpc, answer.details);
      continue;
    }
    const problem = judge(one, answer);
    if (problem === undefined) findings.good(rpc, label);
    else findings.bad(rpc, `${label}: ${problem}`);
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
