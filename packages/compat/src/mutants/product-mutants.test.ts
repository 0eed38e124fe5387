import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CellResult } from '../cell.ts';
import { MUTATION_VARIABLE } from './mutation.ts';
import type { Mutation } from './mutation.ts';
import { PRODUCT_MUTANTS } from './product-mutants.ts';
import type { ProductMutant } from './product-mutants.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
const EDITOR = join(import.meta.dirname, 'edit-source.ts');
const PROGRAM = join(import.meta.dirname, '../main.ts');
const LIMIT_MS = 60_000;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'virtwire-mutants-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** What a run of one cell says, in a process of its own whose sources are edited. */
function play({ side, killedBy }: Pick<ProductMutant, 'side' | 'killedBy'>, { file, find, replace }: Mutation) {
  const report = join(directory, `${Math.random().toString(36).slice(2)}.json`);
  const cell = ['--only', side, '--releases', killedBy.line, '--scenarios', killedBy.scenario, '--json', report];
  const args = ['-C', '@virtwire/source', '--import', EDITOR, PROGRAM, 'matrix', '--quiet', ...cell];
  const env = { ...process.env, [MUTATION_VARIABLE]: JSON.stringify({ file, find, replace }) };
  return new Promise<readonly { readonly result: CellResult }[]>((resolvePlay, reject) => {
    execFile(process.execPath, args, { cwd: ROOT, env }, (_error, stdout, stderr) => {
      try {
        const { cells } = JSON.parse(readFileSync(report, 'utf8')) as { cells: { result: CellResult }[] };
        resolvePlay(cells);
      } catch (caught) {
        reject(new Error(`the run left no report: ${stdout}${stderr}`, { cause: caught }));
      }
    });
  });
}

describe.concurrent('the product with one fault in its source', () => {
  test.each(PRODUCT_MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
    '%s: caught',
    async (_name, mutant) => {
      const cells = await play(mutant, mutant);
      expect(cells).toHaveLength(1);
      expect(cells[0]?.result).toMatchObject({ kind: 'fail' });
    },
    LIMIT_MS,
  );

  const cells = new Map(
    PRODUCT_MUTANTS.map((mutant) => [`${mutant.side} ${mutant.killedBy.scenario} ${mutant.killedBy.line}`, mutant]),
  );
  test.each([...cells])(
    'without a fault, the cell %s does not fail',
    async (_name, mutant) => {
      const played = await play(mutant, { ...mutant, replace: mutant.find });
      expect(played[0]?.result).not.toMatchObject({ kind: 'fail' });
    },
    LIMIT_MS,
  );
});
