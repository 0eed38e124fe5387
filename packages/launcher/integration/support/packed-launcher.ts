import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = join(import.meta.dirname, '../..');

/** A launcher as images have it: one file, and what lies beside it. */
export interface PackedLauncher extends Disposable {
  /** The program, for {@link startLauncherPod}. */
  readonly program: readonly string[];
}

/** Packs the launcher into a directory of its own, which is removed when this is disposed of. */
export function packLauncher(): PackedLauncher {
  // Inside the package, so that the native addon is found.
  const folder = mkdtempSync(join(PACKAGE, '.bundle-'));
  const packed: PackedLauncher = {
    program: [join(folder, 'virt-launcher.mjs')],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
  try {
    const script = join(PACKAGE, 'scripts/bundle.ts');
    execFileSync(process.execPath, ['-C', '@virtwire/source', script, ...packed.program], { stdio: 'ignore' });
    // The pod's user has to get at it.
    execFileSync('chmod', ['-R', 'a+rX', folder]);
    return packed;
  } catch (caught) {
    packed[Symbol.dispose]();
    throw caught;
  }
}
