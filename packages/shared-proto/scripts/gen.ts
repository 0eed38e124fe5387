import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/**
 * Writes src/gen from proto/ (`nx gen shared-proto`), or with `--check` says whether it is stale and ends with 1.
 * buf and the plugin come from node_modules; no network is used.
 */
const root = join(import.meta.dirname, '../../..');
const committed = join(import.meta.dirname, '../src');
const bin = join(root, 'node_modules/.bin');

function generate(base: string): void {
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  const run = (...args: string[]): void => {
    execFileSync(join(bin, 'buf'), args, { cwd: join(root, 'proto'), env, stdio: 'inherit' });
  };
  run('lint');
  run('generate', '--output', base);
}

function readTree(directory: string): Map<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(directory, path), readFileSync(path, 'utf8')];
    }),
  );
}

/** Names of files that differ between what is committed and what the protos give now. */
function findStale(): readonly string[] {
  const base = mkdtempSync(join(tmpdir(), 'virtwire-gen-'));
  try {
    generate(base);
    const fresh = readTree(join(base, 'gen'));
    const present = readTree(join(committed, 'gen'));
    const names = new Set([...fresh.keys(), ...present.keys()]);
    return [...names].filter((name) => fresh.get(name) !== present.get(name)).sort();
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

if (process.argv.includes('--check')) {
  const stale = findStale();
  for (const name of stale)
    process.stderr.write(`src/gen/${name} is stale: run "npx nx run @virtwire/shared-proto:gen"\n`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  generate(committed);
}
