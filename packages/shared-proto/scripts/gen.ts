import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { format, resolveConfig } from 'prettier';

import { readBundle } from '../src/testing/bundle.ts';
import { renderHistoryData } from './history-data.ts';

/**
 * Writes src/gen from proto/, and the schema history from the reference history (`nx gen shared-proto`), or with
 * `--check` says what is stale and ends with 1. buf and the plugin come from node_modules; no network is used.
 */
const root = join(import.meta.dirname, '../../..');
const committed = join(import.meta.dirname, '../src');
const HISTORY_DATA = join(committed, 'history/history.gen.ts');
const HISTORY_PAGE = join(committed, '../HISTORY.md');
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
    return [...names]
      .filter((name) => fresh.get(name) !== present.get(name))
      .sort()
      .map((name) => `src/gen/${name}`);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** The page is made by code that reads the data, so the data has to be written first. */
async function renderPage(): Promise<string> {
  const { renderHistoryPage } = await import('./history-page.ts');
  const options = await resolveConfig(HISTORY_PAGE);
  return format(renderHistoryPage(), { ...options, filepath: HISTORY_PAGE });
}

const data = renderHistoryData(readBundle('wire-history').get('history.json'));
const isSame = (path: string, text: string): boolean => readFileSync(path, 'utf8') === text;
if (process.argv.includes('--check')) {
  const stale = [
    ...findStale(),
    ...(isSame(HISTORY_DATA, data) ? [] : ['src/history/history.gen.ts']),
    ...(isSame(HISTORY_PAGE, await renderPage()) ? [] : ['HISTORY.md']),
  ];
  for (const name of stale) process.stderr.write(`${name} is stale: run "npx nx run @virtwire/shared-proto:gen"\n`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  generate(committed);
  writeFileSync(HISTORY_DATA, data);
  writeFileSync(HISTORY_PAGE, await renderPage());
}
