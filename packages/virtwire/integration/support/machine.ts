import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeLayout } from '../../src/index.ts';
import type { NodeLayout } from '../../src/index.ts';

/** The checkout that these tests lie in. */
export const ROOT = join(import.meta.dirname, '..', '..', '..', '..');
/** Kernel and disk of the test guest. */
export const GUEST = join(ROOT, '.cache', 'guest');

/** Why these tests cannot run here, if they cannot. */
export function missingForVms(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  const runtime = ['/usr/sbin/runc', '/usr/bin/runc'].some((path) => existsSync(path));
  if (!runtime || !existsSync('/usr/bin/qemu-system-x86_64')) return 'needs runc and QEMU: run scripts/setup.sh';
  return undefined;
}

/** Builds the test guest unless it is there. */
export function ensureGuest(): void {
  execFileSync('sh', [join(ROOT, 'scripts', 'guest', 'build.sh')], { stdio: 'inherit' });
}

/** A state directory of its own, removed at the end. */
export class Scratch implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'virtwire-it-'));
  readonly layout: NodeLayout = nodeLayout(join(this.dir, 'state'));

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Waits for a condition with a deadline. */
export async function until<T>(what: string, timeoutMs: number, look: () => T | undefined | false): Promise<T> {
  for (const deadline = Date.now() + timeoutMs; ; await sleep(20)) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
  }
}

/** The text of a log, empty while there is none. */
export function readLog(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** How often a message is in a log. */
export function countIn(file: string, message: string): number {
  return readLog(file).split(message).length - 1;
}
