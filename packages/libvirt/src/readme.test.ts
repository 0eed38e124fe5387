import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startFakeDaemon } from './fake/index.ts';
import { tinyDomainXml } from './testing/domain-xml.ts';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const EXAMPLES = [...readme.matchAll(/```ts\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/g)].map(
  ([, code = '', output = '']) => [code, output] as const,
);

test('every program in the README is followed by its output', () => {
  expect(EXAMPLES.length).toBe(readme.split('```ts\n').length - 1);
  expect(EXAMPLES.length).toBeGreaterThan(4);
});

test.each(EXAMPLES.map(([code, output], i) => [i + 1, code, output] as const))(
  'example %d of the README prints what it says',
  async (_number, code, output) => {
    await using daemon = await startFakeDaemon();
    daemon.hypervisor.define(tinyDomainXml({ name: 'demo' }));
    // Inside the package, so that its own name resolves as it does for a user.
    const directory = mkdtempSync(join(root, '.readme-'));
    try {
      const file = join(directory, 'example.ts');
      writeFileSync(file, code);
      const env = { ...process.env, LIBVIRT_DEFAULT_URI: `qemu+unix:///system?socket=${daemon.socketPath}` };
      const { stdout } = await promisify(execFile)(process.execPath, ['-C', '@virtwire/source', file], { env });
      expect(stdout).toBe(output);
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
