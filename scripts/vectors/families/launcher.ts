import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  comparableSteps,
  isAccident,
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

/** What protobuf's JSON leaves out. */
const EMPTY: ReadonlySet<unknown> = new Set(['', undefined, 0]);

/**
 * A launcher on a scripted libvirt, agent and handler, given requests and events: its calls, its tools with what they
 * pack, its messages and its answers.
 */
export async function* runLauncher(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    if (!files.has(`${name}/input.json`)) continue;
    const input = files.json(`${name}/input.json`) as PreparedInput;
    const output = files.json(`${name}/output.json`) as VectorOutput;
    yield await playCase(name, input, output);
  }
}

async function playCase(name: string, input: PreparedInput, output: VectorOutput): Promise<CaseResult> {
  using world = createDiskWorld({ ...input, hasDirectIo: input.config?.directIO ?? true });
  return await runCase(name, async () => {
    const result = await runVector(input, createVectorPreparation(world, input), world);
    return compare(input, output, result, world);
  });
}

function compare(
  input: PreparedInput,
  output: VectorOutput,
  result: VectorResult,
  world: DiskWorld,
): readonly string[] {
  const all = output.steps.slice(output.steps.length - input.steps.length);
  const crash = all.findIndex(({ panic }) => panic !== undefined);
  const recorded = crash < 0 ? all : all.slice(0, crash + 1);
  const traces = recorded.flatMap(({ trace }) => trace ?? []);
  const calls = comparableSteps(input, recorded, result.steps, world.inPod);
  const differences = recorded.flatMap((step, i) => {
    const got = result.steps[i];
    return [
      ...diffJson(calls[i]?.expected, calls[i]?.actual, `/${String(i)}/calls`),
      ...diffAnswer(step, got?.response, got?.error === undefined ? undefined : world.inPod(got.error), i),
    ];
  });
  if (isAccident(recorded.at(-1))) return differences;
  return [
    ...differences,
    ...diffJson(traces.filter(isMaking).map(toolRun), world.runs.map(toolRun), '/tools'),
    ...diffJson(output.after.metadata, result.metadata, '/metadata'),
    ...diffJson(output.after.deviceAliases ?? {}, result.aliases, '/aliases'),
    ...diffJson(output.after.domain, result.domain, '/domain'),
    ...diffJson(pausedAfter(input, output), result.pausedByRequest, '/paused'),
    ...diffFiles(output.after, world),
  ];
}

/**
 * VMs that no sync resumes. The recorded launcher goes on to count one that it paused for a migration that then failed,
 * which nobody would resume any more.
 */
function pausedAfter({ vmi, pausedByRequest = [] }: PreparedInput, { after }: VectorOutput): readonly string[] {
  const { Failed, Mode } = (after.metadata['Migration'] ?? {}) as { readonly Failed?: boolean; readonly Mode?: string };
  const isFreed = Failed === true && Mode === 'Paused' && !pausedByRequest.includes(vmi.metadata.uid);
  return (after.pausedByRequest ?? []).filter((uid) => !isFreed || uid !== vmi.metadata.uid);
}

/** Files that were made, changed or removed. Whom they belong to is the pod's matter, and sizes are the stand-ins'. */
function diffFiles({ files = {}, filesRemoved = [] }: VectorOutput['after'], { root }: DiskWorld): readonly string[] {
  const made = Object.entries(files).flatMap(([path, { mode, content, link }]) => {
    const file = join(root, path);
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (found === undefined) return [`/files${path}: expected it to be there`];
    if (link !== undefined) return diffJson(link, readlinkSync(file).replace(root, ''), `/files${path}/link`);
    const shown = content === undefined || !found.isFile() ? content : readFileSync(file, 'utf8').replaceAll(root, '');
    return [
      ...diffJson(mode, `0o${(found.mode & 0o777).toString(8)}`, `/files${path}/mode`),
      ...diffJson(content, shown, `/files${path}/content`),
    ];
  });
  const kept = filesRemoved.filter((path) => lstatSync(join(root, path), { throwIfNoEntry: false }) !== undefined);
  return [...made, ...kept.map((path) => `/files${path}: expected it to be gone`)];
}

function diffAnswer(step: Step, response: unknown, error: string | undefined, index: number): readonly string[] {
  // What crashes the recorded launcher must not pass for done.
  if (isAccident(step)) return [];
  if (step.panic !== undefined) return error === undefined ? [`/${String(index)}/answer: expected a failure`] : [];
  if (step.response === undefined) return [];
  const path = `/${String(index)}/answer`;
  const { response: inner, ...rest } = step.response;
  const outcome = (inner ?? step.response) as { readonly success?: boolean; readonly message?: string };
  const failure = outcome.success === true ? undefined : outcome.message;
  const { response: given, ...fields } = (response ?? {}) as Readonly<Record<string, unknown>>;
  const said = error ?? failureOf(given);
  if (failure !== said) return diffJson(failure, said, path);
  return failure === undefined || error === undefined ? diffJson(body(rest), body(fields), path) : [];
}

function failureOf(outcome: unknown): string | undefined {
  const { success, message } = (outcome ?? {}) as { readonly success?: boolean; readonly message?: string };
  return success === false ? message : undefined;
}

/** A field of an answer: embedded JSON text read, bytes and large numbers as in protobuf's JSON. */
function readable(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'string') return /^[[{]/.test(value) ? parseJson(value) : value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const fields = Object.entries(value).filter(([key, field]) => key !== 'success' || field !== false);
  return Object.fromEntries(fields.map(([key, field]) => [key, readable(field)]));
}

/** An answer beside its success; empty fields are left out. */
function body(response: unknown): Readonly<Record<string, unknown>> {
  const fields = Object.entries((response ?? {}) as Record<string, unknown>);
  return Object.fromEntries(
    fields
      .filter(([key, value]) => !EMPTY.has(value) && key !== 'success' && key !== 'message')
      .map(([key, value]) => [key, readable(value)]),
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
