import { setTimeout as sleep } from 'node:timers/promises';
import { CMD_RPC_NAMES, CMD_RPCS, cmdV1, type CmdRpc } from '@virtwire/shared-proto';
import { domainName, renderVmiJson, type Vmi } from '@virtwire/vm-model';
import type { Fields } from '../emulate/schema/release-schema.ts';
import type { Findings } from './findings.ts';
import { CODE, type ProbePeer } from './peer.ts';
import { askDomain, stateQueries, vmQueries } from './questions.ts';
import { runStep, runSteps, type Step } from './steps.ts';
import { inPhase } from './throw-away-vmi.ts';

/** What the second half of a probe works on. */
export interface Life {
  readonly peer: ProbePeer;
  readonly findings: Findings;
  readonly vmi: Vmi;
  /** Where a dump and a backup may go, as the launcher sees it. */
  readonly scratchDir: string;
}

const ANY_TEXT = /./;
const NO_VMI = /^No valid (vmi object|secret options) present in command server request/;
const NOT_FOUND = /Domain not found/;
const STATE_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 200;
const MIGRATION_UID = 'b7c9a3de-1f0c-4f0a-8d2e-6f5e4d3c2b1a';

const hasVmi = (rpc: CmdRpc): boolean => 'vmi' in (CMD_RPCS[rpc].request as typeof cmdV1.VMIRequest).fromPartial({});

/** The smallest request of each RPC with a VMI; what crashes launchers written in Go is in it. @source wire.md 11 */
function requestOf(rpc: CmdRpc, vmiJson: string, more: Fields = {}): Fields {
  const isVmiRequest = CMD_RPCS[rpc].request === (cmdV1.VMIRequest as unknown);
  const withOptions = isVmiRequest && rpc !== 'GetLaunchMeasurement' && rpc !== 'GetScreenshot';
  return { vmi: { vmiJson }, ...(withOptions ? { options: {} } : {}), ...more };
}

/** Requests without a VMI are refused in the same words by all. */
function refusals(): readonly Step[] {
  return CMD_RPC_NAMES.filter(hasVmi).flatMap((rpc) =>
    ['', '{"metadata":'].map((vmiJson) => ({
      ...{ rpc, label: vmiJson === '' ? 'with an empty VMI' : 'with half a VMI', request: requestOf(rpc, vmiJson) },
      expect: { refused: rpc === 'RedefineCheckpoint' ? ANY_TEXT : NO_VMI },
    })),
  );
}

/** What is asked of a launcher that has no domain yet. @source wire.md 6 */
function withoutDomain(vmiJson: string, name: string): readonly Step[] {
  const step = (rpc: CmdRpc, expect: Step['expect']): Step => ({
    ...{ rpc, label: 'without a domain', request: requestOf(rpc, vmiJson), expect },
  });
  return [
    step('PauseVirtualMachine', { refused: NOT_FOUND }),
    step('UnpauseVirtualMachine', { refused: NOT_FOUND }),
    step('FreezeVirtualMachine', { refused: ANY_TEXT }),
    step('ShutdownVirtualMachine', 'success'),
    step('KillVirtualMachine', 'success'),
    { rpc: 'GetDomainDirtyRateStats', label: 'without a domain', expect: { refused: ANY_TEXT } },
    {
      ...{ rpc: 'Exec', label: 'without a domain', expect: { refused: NOT_FOUND } },
      request: { domainName: name, Command: '/bin/true', timeoutSeconds: 1 },
    },
  ];
}

/** Calls that leave a VM running as it is. */
function onRunning(vmiJson: string, name: string): readonly Step[] {
  const step = (rpc: CmdRpc, label: string, expect: Step['expect'], more: Fields = {}): Step => ({
    ...{ rpc, label, request: requestOf(rpc, vmiJson, more), expect },
  });
  return [
    step('SyncVirtualMachine', 'again', 'success'),
    ...stateQueries('running', true),
    { rpc: 'GetDomainDirtyRateStats', label: 'running', expect: { mayRefuse: /dirty|Dirty/ } },
    ...vmQueries('running', { vmi: { vmiJson } }),
    {
      ...{ rpc: 'GuestPing', label: 'running', expect: { mayRefuse: ANY_TEXT } },
      request: { domainName: name, timeoutSeconds: 1 },
    },
    {
      ...{ rpc: 'Exec', label: 'running', expect: { mayRefuse: ANY_TEXT } },
      request: { domainName: name, Command: '/bin/true', timeoutSeconds: 1 },
    },
    {
      ...{ rpc: 'Exec', label: 'of another domain', expect: { refused: NOT_FOUND } },
      request: { domainName: 'no_such', Command: '/bin/true', timeoutSeconds: 1 },
    },
    step('FreezeVirtualMachine', 'running', { mayRefuse: ANY_TEXT }, { unfreezeTimeoutSeconds: 10 }),
    step('UnfreezeVirtualMachine', 'running', { mayRefuse: ANY_TEXT }),
    step('SyncVirtualMachineCPUs', 'the same number', { mayRefuse: /^failed to update vCPUs: / }),
    step('HotplugHostDevices', 'none to plug', 'success'),
    step('SignalTargetPodCleanup', 'for another pod', 'success'),
    step('FinalizeVirtualMachineMigration', 'without a migration', { mayRefuse: ANY_TEXT }),
    step('CancelVirtualMachineMigration', 'without a migration', {
      mayRefuse: /^failed to cancel migration - vmi is not migrating$/,
    }),
  ];
}

/** Requests that are checked, and lead to nothing without more. @source wire.md 6 */
function checkedRequests(vmiJson: string): readonly Step[] {
  const step = (rpc: CmdRpc, label: string, text: RegExp, more: Fields): Step => ({
    ...{ rpc, label, request: requestOf(rpc, vmiJson, more), expect: { refused: text } },
  });
  const cbt =
    /(ChangedBlockTracking is not enabled|backup options object not present|unknown backup mode|not supported)/;
  return [
    step('MigrateVirtualMachine', 'without options', /^migration options object not present/, {}),
    step('MigrateVirtualMachine', 'with half its options', /^no valid migration options object present/, {
      options: '{"Bandwidth":',
    }),
    step(
      'MigrateVirtualMachine',
      'without a migration state',
      /^cannot migrat(e|ion) VMI until migrationState is ready/,
      { options: '{}' },
    ),
    step('BackupVirtualMachine', 'without options', cbt, {}),
    step('BackupVirtualMachine', 'without a mode', cbt, {
      options: '{"cmd":"Start","backupStartTime":"2026-01-01T00:00:00Z"}',
    }),
    step('RedefineCheckpoint', 'without a checkpoint', /^Redefine checkpoint failed/, {}),
    step('InjectLaunchSecret', 'without options', /^No valid secret options present/, {}),
    step('InjectLaunchSecret', 'without a header', /^Header is required$/, { options: '{"secret":"c2VjcmV0"}' }),
    step('InjectLaunchSecret', 'without a secret', /^Secret is required$/, { options: '{"header":"aGVhZGVy"}' }),
    step('InjectLaunchSecret', 'to a guest without SEV', ANY_TEXT, {
      options: '{"header":"aGVhZGVy","secret":"c2VjcmV0"}',
    }),
  ];
}

/** Waits until the domain is in one of these states. */
async function untilDomain(
  { peer, findings }: Life,
  rpc: CmdRpc,
  what: string,
  states: readonly string[],
): Promise<void> {
  const endsAtMs = performance.now() + STATE_LIMIT_MS;
  let seen = '';
  while (performance.now() < endsAtMs) {
    const known = await askDomain(peer, findings, what);
    if (known === 'unknown') {
      findings.bad(rpc, `${what}: the launcher does not tell of its domain`);
      return;
    }
    seen = known?.status ?? 'none';
    if (states.includes(seen)) {
      findings.good(rpc, what);
      return;
    }
    await sleep(LOOK_EVERY_MS);
  }
  findings.bad(
    rpc,
    `${what}: the domain is ${seen} instead of ${states.join(' or ')} after ${STATE_LIMIT_MS / 1_000} s`,
  );
}

/** Does something to the VM and waits for what comes of it. */
async function act(
  life: Life,
  rpc: CmdRpc,
  label: string,
  states: readonly string[],
  more: Fields = {},
): Promise<boolean> {
  const { peer, findings, vmi } = life;
  const request = requestOf(rpc, renderVmiJson(vmi), more);
  const answer = await runStep(peer, findings, { rpc, label, request, expect: 'success' });
  if (answer?.outcome?.success !== true) return false;
  await untilDomain(life, rpc, `${label}: then ${states.join(' or ')}`, states);
  return true;
}

/** Dumps the memory: what comes of it is told by the domain, and depends on the folder. */
async function dump({ peer, findings, vmi, scratchDir }: Life): Promise<void> {
  await runStep(peer, findings, {
    ...{ rpc: 'VirtualMachineMemoryDump', label: 'running', expect: 'success' },
    request: requestOf('VirtualMachineMemoryDump', renderVmiJson(vmi), { dumpPath: `${scratchDir}/probe.memory.dump` }),
  });
}

/** Memory is only asked for where a launcher written in Go survives it. @source wire.md 11 */
async function resizeMemory({ peer, findings, vmi }: Life): Promise<void> {
  const withMemory = JSON.parse(renderVmiJson(vmi)) as {
    spec: { domain: { memory?: Record<string, unknown> } };
    status?: Record<string, unknown>;
  };
  const guest = withMemory.spec.domain.memory?.['guest'] ?? '64Mi';
  withMemory.spec.domain.memory = { ...withMemory.spec.domain.memory, maxGuest: guest };
  withMemory.status = {
    ...withMemory.status,
    memory: { guestAtBoot: guest, guestCurrent: guest, guestRequested: guest },
  };
  await runStep(peer, findings, {
    ...{ rpc: 'SyncVirtualMachineMemory', label: 'the same size', expect: { mayRefuse: ANY_TEXT } },
    request: requestOf('SyncVirtualMachineMemory', JSON.stringify(withMemory)),
  });
}

/** Prepares for a migration that nobody starts: the launcher runs its VM already, and may say so. */
async function prepareTarget({ peer, findings, vmi }: Life): Promise<void> {
  const target = JSON.parse(renderVmiJson(vmi)) as { status?: Record<string, unknown> };
  const migrationState = { migrationUid: MIGRATION_UID, targetNode: 'elsewhere', targetPod: 'elsewhere' };
  target.status = { ...target.status, migrationState };
  await runStep(peer, findings, {
    ...{ rpc: 'SyncMigrationTarget', label: 'of a VM that runs here', expect: { mayRefuse: ANY_TEXT } },
    request: requestOf('SyncMigrationTarget', JSON.stringify(target)),
  });
}

/** The end: by the power button, by force, and without a trace. */
async function end(life: Life): Promise<void> {
  const { peer, findings } = life;
  await act(life, 'ShutdownVirtualMachine', 'running', ['Running', 'ShuttingDown', 'Shutoff', 'Paused', 'none']);
  await act(life, 'KillVirtualMachine', 'running', ['Shutoff', 'Crashed', 'none']);
  const request = requestOf('DeleteVirtualMachine', renderVmiJson(life.vmi));
  await runStep(peer, findings, { rpc: 'DeleteVirtualMachine', label: 'shut off', request, expect: 'success' });
  // A launcher without a domain ends, sooner or later.
  const { code, outcome, fields } = await peer.call('/kubevirt.cmd.v1.Cmd/GetDomain', {}, LOOK_EVERY_MS * 25);
  const isGone = code === CODE.unavailable || (outcome?.success === true && (fields['domain'] ?? '') === '');
  if (isGone) findings.good('DeleteVirtualMachine', 'then there is no domain');
  else findings.bad('DeleteVirtualMachine', 'the domain is still there');
}

/** Leads a VM through the whole contract, from its start to its removal. */
export async function leadLife(life: Life, hasDomain: boolean): Promise<void> {
  const { peer, findings, vmi } = life;
  const fullName = domainName(vmi.metadata.namespace, vmi.metadata.name);
  await runSteps(peer, findings, refusals());
  if (!hasDomain) await runSteps(peer, findings, withoutDomain(renderVmiJson(vmi), fullName));
  if (!(await act(life, 'SyncVirtualMachine', 'start', ['Running']))) return;
  const running: Life = { ...life, vmi: inPhase(vmi, 'Running') };
  const vmiJson = renderVmiJson(running.vmi);
  await runSteps(peer, findings, onRunning(vmiJson, fullName));
  await act(running, 'PauseVirtualMachine', 'running', ['Paused']);
  await act(running, 'PauseVirtualMachine', 'paused already', ['Paused']);
  await act(running, 'SyncVirtualMachine', 'while it is paused by its user', ['Paused']);
  await act(running, 'UnpauseVirtualMachine', 'paused', ['Running']);
  await resizeMemory(running);
  await dump(running);
  await runSteps(peer, findings, checkedRequests(vmiJson));
  await prepareTarget(running);
  await runStep(peer, findings, {
    ...{ rpc: 'SoftRebootVirtualMachine', label: 'running', request: requestOf('SoftRebootVirtualMachine', vmiJson) },
    expect: { mayRefuse: /^VMI neither have the agent connected nor the ACPI feature enabled$/ },
  });
  await act(running, 'ResetVirtualMachine', 'running', ['Running']);
  await end(running);
}
