import { parseJson, parseVmiJson, renderJson, replacePvcByHostDisk } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';

interface Input {
  readonly vmi: unknown;
  readonly replace: boolean;
}

interface Output {
  readonly volumes?: unknown;
  readonly replaceError?: string;
}

/** Claims that become host disks. The making of images is not run here: it wants file systems of its own. */
export async function* runHostDisk(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    if (!files.has(`${name}/input.json`)) continue;
    const input = files.json(`${name}/input.json`) as Input;
    if (!input.replace) {
      yield { name, differences: [], leftOut: 'makes disk images, which needs mounts' };
      continue;
    }
    const output = files.json(`${name}/output.json`) as Output;
    yield await runCase(name, () => {
      const { volumes, replaceError } = output;
      return diffJson(replaceError === undefined ? { volumes } : { replaceError }, replaced(input));
    });
  }
}

function replaced(input: Input): Output {
  try {
    const vmi = replacePvcByHostDisk(parseVmiJson(renderJson(input.vmi)));
    return { volumes: parseJson(renderJson(vmi.spec.volumes)) };
  } catch (error) {
    return { replaceError: error instanceof Error ? error.message : String(error) };
  }
}
