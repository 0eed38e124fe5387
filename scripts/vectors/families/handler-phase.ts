import { calculatePhase } from '@virtwire/handler';
import {
  emptyDomain,
  type Domain,
  type LifeCycle,
  type StateChangeReason,
  type Vmi,
  type VmiPhase,
} from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { type CaseResult, runCase } from '../family.ts';

interface Row {
  readonly domain: {
    readonly status: LifeCycle;
    readonly reason: StateChangeReason;
    readonly acpi?: boolean;
    readonly graceSeconds?: number | null;
  } | null;
  readonly phase: VmiPhase;
  readonly decentralizedTarget?: string;
  readonly launcher?: 'responsive' | 'not-initialized' | 'unresponsive';
  readonly specGraceSeconds?: number | null;
  readonly migration?: string;
  readonly result: VmiPhase;
  readonly requeueAfterSeconds?: number;
}

/** One row is one evaluation of the phase calculation. */
export async function* runHandlerPhase(files: Files): AsyncIterable<CaseResult> {
  const rows = files.json('table.json') as readonly Row[];
  for (const [index, row] of rows.entries()) {
    yield await runCase(`row ${String(index + 1)}`, () => runRow(row));
  }
}

function runRow(row: Row): readonly string[] {
  const { phase, requeueAfterMs } = calculatePhase({
    vmi: vmiOf(row),
    domain: domainOf(row),
    launcher: row.launcher ?? 'responsive',
  });
  const want = describe(
    row.result,
    row.requeueAfterSeconds === undefined ? undefined : row.requeueAfterSeconds * 1_000,
  );
  const got = describe(phase, requeueAfterMs);
  return want === got ? [] : [`${JSON.stringify(row)}: got ${got}`];
}

function describe(phase: VmiPhase, requeueAfterMs: number | undefined): string {
  return `phase "${phase}"${requeueAfterMs === undefined ? '' : `, again after ${String(requeueAfterMs)} ms`}`;
}

function vmiOf(row: Row): Vmi {
  const migrationState = { ...targetState(row.decentralizedTarget ?? 'no'), ...migrationOf(row.migration ?? 'none') };
  const isTarget = (row.decentralizedTarget ?? 'no').startsWith('yes');
  return {
    metadata: {
      name: 'vm',
      namespace: 'vectors',
      uid: 'uid',
      ...(isTarget ? { annotations: { 'kubevirt.io/create-migration-target': 'true' } } : {}),
    },
    spec: {
      domain: { devices: {} },
      ...(typeof row.specGraceSeconds === 'number' ? { terminationGracePeriodSeconds: row.specGraceSeconds } : {}),
    },
    status: { phase: row.phase, ...(Object.keys(migrationState).length > 0 ? { migrationState } : {}) },
  };
}

function targetState(text: string): { failed?: boolean; completed?: boolean } {
  if (text.endsWith('-migration-failed')) return { failed: true };
  return text.endsWith('-migration-completed') ? { completed: true } : {};
}

/** `none`, or a result with a mode, such as `failed-PostCopy`. */
function migrationOf(text: string): { failed?: boolean; completed?: boolean; mode?: 'PostCopy' | 'PreCopy' } {
  if (text === 'none') return {};
  const isFailed = text.startsWith('failed');
  const mode = /post-?copy/i.test(text) ? 'PostCopy' : 'PreCopy';
  return isFailed ? { failed: true, mode } : { completed: true, mode };
}

function domainOf({ domain }: Row): Domain | undefined {
  if (domain === null) return undefined;
  const result = emptyDomain();
  result.Status.Status = domain.status;
  result.Status.Reason = domain.reason;
  if (domain.acpi === true) result.Spec.Features = { ACPI: {} };
  if (typeof domain.graceSeconds === 'number') {
    result.Spec.Metadata.KubeVirt.GracePeriod = { DeletionGracePeriodSeconds: domain.graceSeconds };
  }
  return result;
}
