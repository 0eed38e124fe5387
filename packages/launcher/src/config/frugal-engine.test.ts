import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// In a process of its own: the flags hold for all that runs in one.
const PROGRAM = `
  import { makeEngineFrugal } from '${join(import.meta.dirname, 'frugal-engine.ts')}';
  const collect = makeEngineFrugal();
  const garbage = new WeakRef(new Array(1_000_000).fill(0));
  await new Promise((done) => setTimeout(done, 0));
  const before = garbage.deref() !== undefined;
  await new Promise((done) => setTimeout(done, 0));
  collect();
  const add = (a, b) => a + b;
  for (let i = 0; i < 1e7; i++) add(i, 1);
  const IS_OPTIMISED = 16;
  const optimised = (new Function('f', 'return %GetOptimizationStatus(f)')(add) & IS_OPTIMISED) !== 0;
  process.stdout.write(JSON.stringify({ before, after: garbage.deref() !== undefined, optimised }));
`;

test('a frugal engine collects on demand, and leaves hot code as it is', () => {
  const flags = ['--allow-natives-syntax', '--no-warnings', '--input-type=module', '-e', PROGRAM];
  expect(JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8' }))).toEqual({
    before: true,
    after: false,
    optimised: false,
  });
});
