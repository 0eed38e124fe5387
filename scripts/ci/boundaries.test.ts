import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ESLint } from 'eslint';
import { beforeAll, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const RULE = '@nx/enforce-module-boundaries';

beforeAll(() => {
  // The rule reads the project graph that nx leaves behind; without one it passes everything.
  execFileSync(resolve(root, 'node_modules/.bin/nx'), ['show', 'projects'], {
    cwd: root,
    env: { ...process.env, NX_DAEMON: 'false' },
  });
});

async function ruleMessages(fixture: string, as: string): Promise<string[]> {
  const text = readFileSync(resolve(import.meta.dirname, 'fixtures', fixture), 'utf8');
  const [result] = await new ESLint({ cwd: root }).lintText(text, { filePath: resolve(root, as) });
  return (result?.messages ?? []).filter((m) => m.ruleId === RULE).map((m) => m.message);
}

test.each([
  ['launcher-imports-handler.txt', 'packages/launcher/src/index.ts'],
  ['libvirt-imports-vm-model.txt', 'packages/libvirt/src/index.ts'],
  ['host-reaches-inside-telemetry.txt', 'packages/host/src/index.ts'],
])('the layer rule fires for %s', async (fixture, as) => {
  expect(await ruleMessages(fixture, as)).toHaveLength(1);
});

test('the layer rule is silent for an import that goes down', async () => {
  expect(await ruleMessages('launcher-imports-handler.txt', 'packages/virtwire/src/index.ts')).toEqual([]);
});
