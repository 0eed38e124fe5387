import { renderVmiJson } from '@virtwire/vm-model';
import { keyOf } from '../controller/store.ts';
import type { NodeLayout } from '../state/layout.ts';
import { lockHolder } from '../state/file-lock.ts';
import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';
import { renderAge, renderTable } from './output.ts';
import { renderState, summarise } from './summary.ts';
import type { VmSummary } from './summary.ts';
import { findVmi, openNodeFiles, parseTarget } from './target.ts';

/** What commands that only look are called with. */
export interface LookRequest {
  readonly layout: NodeLayout;
  readonly json: boolean;
  readonly output: Output;
}

/** Events that `describe` shows, the newest. */
const MAX_EVENTS = 20;

function summaries(layout: NodeLayout): VmSummary[] {
  const files = openNodeFiles(layout);
  if (files === undefined) return [];
  return files.store.list().map((vmi) => summarise(vmi, files.records.read(vmi.metadata.uid)));
}

const ageOf = (vm: VmSummary, now: number): string =>
  vm.createdAt === undefined ? '' : renderAge(now - Date.parse(vm.createdAt));

/** Lists the VMs of this node. */
export function listVms({ layout, json, output }: LookRequest): number {
  const vms = summaries(layout);
  if (json) {
    output.line(JSON.stringify(vms, null, 2));
    return EXIT.ok;
  }
  if (vms.length === 0) {
    output.line(`no VMs in ${layout.stateDir}`);
    return EXIT.ok;
  }
  const now = Date.now();
  const rows = vms.map((vm) => [
    vm.namespace,
    vm.name,
    renderState(vm),
    ageOf(vm, now),
    vm.agentConnected ? 'connected' : '-',
    vm.podIp ?? '-',
    vm.reason ?? '',
  ]);
  output.line(renderTable(['NAMESPACE', 'NAME', 'STATE', 'AGE', 'AGENT', 'POD IP', 'REASON'], rows));
  return EXIT.ok;
}

/** Tells everything about one VM. */
export function describeVm(target: string, { layout, json, output }: LookRequest): number {
  const key = parseTarget(target);
  const { vmi, files } = findVmi(layout, key);
  if (json) {
    output.line(renderVmiJson(vmi, 2));
    return EXIT.ok;
  }
  const record = files.records.read(vmi.metadata.uid);
  const vm = summarise(vmi, record);
  const { status } = vmi;
  const os = status?.guestOSInfo;
  const facts: [string, string | undefined][] = [
    ['Name', keyOf(vmi)],
    ['UID', vm.uid],
    ['State', renderState(vm)],
    ['Reason', vm.reason],
    ['Manifest', vmi.metadata.annotations?.['virtwire.io/manifest']],
    ['Created', vm.createdAt],
    ['Managed by', managerOf(layout)],
    ['Pod', record === undefined ? undefined : `${record.podUid}, process ${record.pid}, ${record.podIp}`],
    ['Machine', status?.machine?.type],
    ['Memory', status?.memory?.guestCurrent === undefined ? undefined : String(status.memory.guestCurrent)],
    [
      'Guest',
      os?.prettyName === undefined || os.prettyName === ''
        ? undefined
        : `${os.prettyName}, kernel ${os.kernelRelease ?? ''}`,
    ],
  ];
  for (const [name, value] of facts)
    if (value !== undefined && value !== '') output.line(`${`${name}:`.padEnd(14)}${value}`);
  describeLists(vmi, output);
  const events = files.events.read(key).filter((event) => event.uid === vm.uid);
  const rows = events.slice(-MAX_EVENTS).map((event) => [event.at, event.type, event.reason, event.message]);
  if (rows.length > 0) output.line(`\n${renderTable(['EVENT', 'TYPE', 'REASON', 'MESSAGE'], rows)}`);
  return EXIT.ok;
}

function managerOf(layout: NodeLayout): string {
  const holder = lockHolder(layout.lockFile);
  return holder === undefined
    ? 'nobody: virtwire node or run is not running'
    : `${holder.command} (process ${holder.pid})`;
}

function describeLists({ status }: ReturnType<typeof findVmi>['vmi'], output: Output): void {
  const phases = (status?.phaseTransitionTimestamps ?? []).map((t) => [t.phase, t.phaseTransitionTimestamp ?? '']);
  if (phases.length > 0) output.line(`\n${renderTable(['PHASE', 'SINCE'], phases)}`);
  const conditions = (status?.conditions ?? []).map((c) => [c.type, c.status, c.reason ?? '', c.message ?? '']);
  if (conditions.length > 0) output.line(`\n${renderTable(['CONDITION', 'STATUS', 'REASON', 'MESSAGE'], conditions)}`);
  const nics = (status?.interfaces ?? []).map((n) => [
    n.name ?? '',
    n.ipAddress ?? '',
    n.mac ?? '',
    n.infoSource ?? '',
  ]);
  if (nics.length > 0) output.line(`\n${renderTable(['INTERFACE', 'IP', 'MAC', 'SOURCE'], nics)}`);
  const volumes = (status?.volumeStatus ?? []).map((v) => [v.name, v.target, v.phase ?? '', v.message ?? '']);
  if (volumes.length > 0) output.line(`\n${renderTable(['VOLUME', 'TARGET', 'PHASE', 'MESSAGE'], volumes)}`);
}
