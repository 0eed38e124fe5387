import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { CaseFile } from './case.ts';

type Snapshot = ReadonlyMap<string, { readonly mode: string; readonly size: number }>;

/** Files below a root with their mode and size. */
export function snapshot(root: string): Snapshot {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode, size } = lstatSync(path);
      return [path.slice(root.length), { mode: (mode & 0o777).toString(8), size }];
    }),
  );
}

/** What was made or changed between two looks. */
export function changes(before: Snapshot, after: Snapshot): readonly CaseFile[] {
  return [...after]
    .filter(([path, file]) => before.get(path)?.mode !== file.mode || before.get(path)?.size !== file.size)
    .map(([path, file]) => ({ path, ...file, new: !before.has(path) }));
}
