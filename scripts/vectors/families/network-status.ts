import {
  createNetworkPart,
  createPodInterfaceCache,
  interfaceStatuses,
  type NetworkFiles,
} from '@virtwire/handler/testing';
import { createLogger } from '@virtwire/telemetry';
import { emptyDomain, parseDomainJson, parseVmiJson, renderDomainJson, renderJson, type Vmi } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';

type StateFiles = Readonly<Record<string, unknown>>;

interface Step {
  readonly op: 'update' | 'files' | 'teardown' | 'restartHandler';
  readonly vmi?: { readonly status?: object };
  readonly domain?: object | null;
  readonly statusFromStepBefore?: boolean;
  readonly files?: StateFiles;
}

interface Result {
  readonly interfaces?: readonly unknown[] | null;
  readonly error?: string;
}

const DIRECTORY = '/var/run/kubevirt-private/network-info-cache';

/**
 * The handler's memory of state files and its status function, step by step; equal are the interfaces, in order. Entries
 * with `multus-status` only come in random order in Go, so several of them at the end are compared as a set.
 */
export async function* runNetworkStatus(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as { readonly files?: StateFiles; readonly steps: readonly Step[] };
    const output = files.json(`${name}/output.json`) as readonly Result[];
    yield await runCase(name, () => runSteps(input.files ?? {}, input.steps, output));
  }
}

async function runSteps(
  initial: StateFiles,
  steps: readonly Step[],
  output: readonly Result[],
): Promise<readonly string[]> {
  const stored = new Map<string, string>();
  const store = (files: StateFiles): void => {
    for (const [path, value] of Object.entries(files)) {
      if (value === null) stored.delete(path);
      else stored.set(path, typeof value === 'string' ? value : renderJson(value));
    }
  };
  store(initial);
  const part = networkPart(stored);
  let memory = createPodInterfaceCache(part);
  let last: unknown;
  const differences: string[] = [];
  for (const [i, step] of steps.entries()) {
    if (step.op === 'files') store(step.files ?? {});
    else if (step.op === 'restartHandler') memory = createPodInterfaceCache(part);
    else {
      const before = step.statusFromStepBefore === true ? { status: { ...step.vmi?.status, interfaces: last } } : {};
      const vmi = parseVmiJson(renderJson({ ...step.vmi, ...before }));
      if (step.op === 'teardown') memory.drop(vmi.metadata.uid);
      else {
        last = await update(vmi, step, memory);
        // Where Go's process ends, it is enough that ours does not.
        if (output[i]?.error?.startsWith('panic:') === true) continue;
        differences.push(...diffJson(output[i]?.interfaces ?? [], JSON.parse(renderJson(last ?? [])), `step ${String(i)}`)); // prettier-ignore
      }
    }
  }
  return differences;
}

async function update(vmi: Vmi, step: Step, memory: ReturnType<typeof createPodInterfaceCache>): Promise<unknown> {
  const domain = step.domain === null || step.domain === undefined ? undefined : domainOf(step.domain);
  const found = new Map<string, { podIP: string; podIPs: readonly string[] }>();
  for (const { name } of vmi.spec.domain.devices.interfaces ?? []) {
    const pod = domain === undefined ? undefined : await memory.get(vmi, name);
    if (pod !== undefined) found.set(name, pod);
  }
  const result = interfaceStatuses(vmi, domain, found);
  if (domain !== undefined) memory.dropAbsent(vmi);
  return result;
}

/** The cases give only the keys that matter. */
function domainOf(given: object): ReturnType<typeof parseDomainJson> {
  const whole = JSON.parse(renderDomainJson(emptyDomain())) as Record<string, object>;
  const { Spec, Status } = given as { Spec?: { Devices?: object }; Status?: object };
  const spec = whole['Spec'] as { Devices: object };
  return parseDomainJson(
    renderJson({
      ...whole,
      Spec: { ...spec, Devices: { ...spec.Devices, ...Spec?.Devices } },
      Status: { ...whole['Status'], ...Status },
    }),
  );
}

function networkPart(stored: ReadonlyMap<string, string>): ReturnType<typeof createNetworkPart> {
  const nodeFiles: NetworkFiles = {
    read: (path) => stored.get(`${DIRECTORY}/${path}`),
    write: () => undefined,
    remove: () => undefined,
  };
  const unused = (): never => {
    throw new Error('no set-up in these cases');
  };
  return createNetworkPart(
    {
      log: createLogger('virt-handler', { destination: { write: () => undefined } }),
      ports: { nodeFiles, podFiles: unused, openKernel: unused },
    },
    { privateDir: '/', ownPodIp: undefined, bindingPlugins: () => ({}), portRanges: () => false },
  );
}
