import {
  bindingTrace,
  createDiskWorld,
  createVectorPreparation,
  type DiskWorld,
  type PreparedInput,
  runVector,
  type ToolRun,
  type TraceEntry,
  type VectorOutput,
  type VectorResult,
} from '@virtwire/launcher/testing';
import { parseJson } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';

type Step = VectorOutput['steps'][number];

/** What a launcher says to a request that it cannot carry out yet. */
const UNSUPPORTED = / not supported (?:by this launcher )?yet/;

/** Calls that change the devices of a running VM. */
const DEVICE_CALLS: ReadonlySet<unknown> = new Set([
  ...['AttachDeviceFlags', 'DetachDeviceFlags', 'UpdateDeviceFlags', 'BlockResize', 'GetBlockInfo'],
]);

/** Cases that this launcher answers otherwise on purpose. */
const DIFFERS: Readonly<Record<string, string>> = {
  '046-ignition': 'ignition data reaches QEMU after the second define too',
  '058-xml-unparsable': 'XML errors have words of their own',
  '077-notify-never': 'the newest state is sent when the pipe is back, however late',
  '133-unpause-twice': 'the clock is set after every pause, not only the first',
};

/**
 * A launcher on a scripted libvirt, agent and handler, given requests and events: its calls, its tools with what they
 * pack, its messages and its answers.
 */
export async function* runLauncher(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    if (!files.has(`${name}/input.json`)) continue;
    const input = files.json(`${name}/input.json`) as PreparedInput;
    const output = files.json(`${name}/output.json`) as VectorOutput;
    const leftOut = DIFFERS[name] ?? obstacle(input, output);
    if (leftOut === undefined) yield await playCase(name, input, output);
    else yield { name, differences: [], leftOut };
  }
}

function obstacle(input: PreparedInput, output: VectorOutput): string | undefined {
  if (output.steps.some(({ panic }) => panic !== undefined)) return 'the recorded launcher crashed';
  const calls = output.steps.flatMap(({ trace }) => trace ?? []);
  if (calls.some(({ libvirt }) => DEVICE_CALLS.has(libvirt))) return 'devices of a running VM are not changed yet';
  if (output.after.metadata['Backup'] !== undefined) return 'backups are not supported yet';
  const needsDevices = Object.values(input.files ?? {}).some((file) => 'block' in file && file.block);
  return needsDevices ? 'needs device nodes' : undefined;
}

async function playCase(name: string, input: PreparedInput, output: VectorOutput): Promise<CaseResult> {
  using world = createDiskWorld({ ...input, hasDirectIo: input.config?.directIO ?? true });
  let leftOut: string | undefined;
  const played = await runCase(name, async () => {
    const result = await runVector(input, createVectorPreparation(world, input));
    leftOut = result.steps.map(({ error }) => UNSUPPORTED.exec(error ?? '')).find((found) => found !== null)?.input;
    return leftOut === undefined ? compare(input, output, result, world) : [];
  });
  return leftOut === undefined ? played : { ...played, leftOut: leftOut.replace(/(?<=supported yet).*/, '') };
}

function compare(
  input: PreparedInput,
  output: VectorOutput,
  result: VectorResult,
  world: DiskWorld,
): readonly string[] {
  const recorded = output.steps.slice(output.steps.length - input.steps.length);
  const traces = recorded.flatMap(({ trace }) => trace ?? []);
  const differences = recorded.flatMap((step, i) => {
    const got = result.steps[i];
    return [
      ...diffJson(comparable(step.trace ?? [], world), comparable(got?.trace ?? [], world), `/${String(i)}/calls`),
      ...diffAnswer(step, got?.response, got?.error === undefined ? undefined : world.inPod(got.error), i),
    ];
  });
  return [
    ...differences,
    ...diffJson(traces.filter(isMaking).map(toolRun), world.runs.map(toolRun), '/tools'),
    ...diffJson(output.after.metadata, result.metadata, '/metadata'),
    ...diffJson(output.after.deviceAliases ?? {}, result.aliases, '/aliases'),
    ...diffJson(output.after.domain, result.domain, '/domain'),
  ];
}

/** What is binding in a trace; paths as in the pod, though this launcher's root is elsewhere. */
function comparable(trace: readonly TraceEntry[], world: DiskWorld): readonly unknown[] {
  return bindingTrace(
    trace.map((entry) => (typeof entry['xml'] === 'string' ? { ...entry, xml: world.inPod(entry['xml']) } : entry)),
  );
}

function diffAnswer(step: Step, response: unknown, error: string | undefined, index: number): readonly string[] {
  if (step.response === undefined) return [];
  const path = `/${String(index)}/answer`;
  const { response: inner, ...rest } = step.response;
  const outcome = (inner ?? step.response) as { readonly success?: boolean; readonly message?: string };
  const failure = outcome.success === true ? undefined : outcome.message;
  if (failure !== undefined || error !== undefined) return diffJson(failure, error, path);
  return diffJson(body(rest), body(response), path);
}

/** An answer beside its success: embedded JSON text read, empty fields left out. */
function body(response: unknown): Readonly<Record<string, unknown>> {
  const fields = Object.entries((response ?? {}) as Record<string, unknown>);
  return Object.fromEntries(
    fields
      .filter(([key, value]) => value !== '' && value !== undefined && key !== 'success' && key !== 'message')
      .map(([key, value]) => [key, typeof value === 'string' && /^[[{]/.test(value) ? parseJson(value) : value]),
  );
}

function isMaking({ exec, args }: TraceEntry): boolean {
  const isInfo = exec === 'qemu-img' && Array.isArray(args) && args[0] === 'info';
  return exec !== undefined && !isInfo;
}

/** A run of a tool, with the files that it packed. The keys of cloud-init's metadata may come in any order. */
function toolRun(run: ToolRun | TraceEntry): unknown {
  const { exec, args, exitCode, media, modes } = run as Partial<ToolRun>;
  const contents = Object.entries(media ?? {}).map(([name, content]) => {
    return [name, /meta.?data/.test(name) ? parseJson(content) : content] as const;
  });
  return { exec, args, exitCode, modes, media: Object.fromEntries(contents) };
}
