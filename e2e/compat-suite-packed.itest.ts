import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { installPacked, type PackedProject } from './packed-project.ts';

const MODULES = join(import.meta.dirname, '../node_modules');

/** A stranger's test file: both sides by commands of theirs, as a build of another language would be. */
const SUITE = `import { commandHandler, commandLauncher, defineCompatSuite } from '@virtwire/compat';
import { describe, test } from 'vitest';

const program = process.execPath + ' ' + import.meta.dirname + '/node_modules/.bin/virtwire-compat';
defineCompatSuite(
  { handler: commandHandler(program + ' run-handler'), launcher: commandLauncher(program + ' run-launcher') },
  { describe, test },
  { lines: ['v1.0', 'v1.9'], scenarios: ['first-start', 'pause', 'migration-source'] },
);
`;

/** One whose launcher never gets ready. */
const BROKEN = `import { commandLauncher, defineCompatSuite } from '@virtwire/compat';
import { describe, test } from 'vitest';

defineCompatSuite(
  { launcher: commandLauncher(process.execPath + ' --no-such-option') },
  { describe, test },
  { lines: ['v1.4'], scenarios: ['first-start'] },
);
`;

let project: PackedProject | undefined;
beforeAll(async () => {
  project = await installPacked(['@virtwire/compat']);
  symlinkSync(join(MODULES, 'vitest'), join(project.directory, 'node_modules/vitest'));
}, 600_000);
afterAll(() => project?.[Symbol.dispose]());

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** Runs a test file in the stranger's project. @returns each test's outcome by its name. */
async function runSuite(source: string): Promise<ReadonlyMap<string, { status: string; message: string }>> {
  const directory = project?.directory ?? '';
  writeFileSync(join(directory, 'suite.test.js'), source);
  const report = join(directory, 'report.json');
  const args = [
    join(MODULES, 'vitest/vitest.mjs'),
    'run',
    '--root',
    directory,
    '--reporter=json',
    '--outputFile',
    report,
  ];
  await new Promise((resolve) => {
    // vitest's own variables would make the inner run a part of this one.
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(VITEST|NODE_OPTIONS)/.test(key)));
    execFile(process.execPath, args, { cwd: directory, env, timeout: 200_000 }, resolve);
  });
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  return new Map(
    results.map(({ fullName, status, failureMessages }) => [fullName, { status, message: failureMessages.join('\n') }]),
  );
}

test('a stranger puts builds of their own to the test in vitest: passes, and skips what those say they lack', async () => {
  const outcomes = await runSuite(SUITE);
  const statusOf = (name: string): string | undefined => outcomes.get(name)?.status;
  const told = [...outcomes].filter(([, { status }]) => status === 'failed').map(([, { message }]) => message);
  expect(told).toEqual([]);
  for (const pair of ['new handler, launcher v1.0', 'handler v1.9, new launcher']) {
    expect(statusOf(`${pair} first start`), pair).toBe('passed');
    expect(statusOf(`${pair} pause and unpause`), pair).toBe('passed');
  }
  expect(statusOf('handler v1.0, new launcher migration, source side')).toBe('passed');
  expect(statusOf('new handler, launcher v1.9 migration, source side')).toMatch(/skipped|pending/);
  expect(outcomes.size).toBe(12);
});

test('a build that does not start fails with its own words', async () => {
  const outcomes = await runSuite(BROKEN);
  const outcome = outcomes.get('handler v1.4, new launcher first start');
  expect(outcome?.status).toBe('failed');
  expect(outcome?.message).toContain('the launcher is not ready');
  expect(outcome?.message).toContain('ended with code 9');
});
