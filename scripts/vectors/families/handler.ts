import type { Files } from '../../testdata/bundle.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';
import type { CaseInput, CasePass } from './handler/case.ts';
import { diffDeviating, diffPass } from './handler/compare.ts';
import { Scene } from './handler/scene.ts';

/** Case families of features that the handler does not have yet, and what is missing. */
const NOT_YET: Readonly<Record<string, string>> = {
  trackers: 'backup trackers',
  checksums: 'container disk checksums',
};

/** One case is one or more passes of the VM controller over a VMI, against a launcher on the real wire. */
export async function* runHandler(files: Files): AsyncIterable<CaseResult> {
  const deviating = mayDeviate(files);
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as CaseInput;
    const families = [...input.families, ...('backupTrackers' in input ? ['trackers'] : [])];
    const missing = families.map((family) => NOT_YET[family]).find((what) => what !== undefined);
    if (missing !== undefined) {
      yield { name, differences: [], leftOut: `the handler has no ${missing} yet` };
      continue;
    }
    const { passes } = files.json(`${name}/output.json`) as { readonly passes: readonly CasePass[] };
    yield await runCase(name, () => runPasses(input, passes, deviating.has(name)));
  }
}

/** Cases that show a weakness of the model; the folder's index marks them. */
function mayDeviate(files: Files): ReadonlySet<string> {
  if (!files.has('index.json')) return new Set();
  const index = files.json('index.json') as readonly { readonly name: string; readonly mayDeviate?: boolean }[];
  return new Set(index.filter((entry) => entry.mayDeviate === true).map((entry) => entry.name));
}

async function runPasses(
  input: CaseInput,
  passes: readonly CasePass[],
  mayDiffer: boolean,
): Promise<readonly string[]> {
  await using scene = await Scene.open(input);
  const differences: string[] = [];
  for (const [index, expected] of passes.entries()) {
    const step = input.steps?.[index - 1];
    if (step !== undefined) await scene.advance(step);
    const outcome = await scene.pass(Object.keys(expected.after.launcherClients));
    const found = mayDiffer ? diffDeviating(expected, outcome) : diffPass(expected, outcome, scene.key);
    differences.push(...found.map((text) => (passes.length > 1 ? `pass ${String(index + 1)}: ${text}` : text)));
  }
  return differences;
}
