import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Size in bytes of all files below a directory; what cannot be looked at counts nothing. */
export async function ephemeralBytes(dir: string): Promise<bigint> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => {
      const found = await stat(join(entry.parentPath, entry.name), { bigint: true }).catch(() => undefined);
      return found?.size ?? 0n;
    });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0n);
}
