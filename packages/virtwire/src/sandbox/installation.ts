import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { VirtwireError } from '../errors.ts';

/** Where the programs of virtwire lie, on the host and in a sandbox. */
export interface Installation {
  /** Directory that holds node and all packages; a sandbox sees it at {@link SANDBOX_ROOT}. */
  readonly root: string;
  /** Node's binary below the root. */
  readonly node: string;
  /** Arguments of node before the program: the condition under which packages resolve to source, in a checkout. */
  readonly nodeArgs: readonly string[];
  /** Program files below the root. */
  readonly launcher: string;
  readonly virtwire: string;
}

/** Where a sandbox sees the installation, read-only. */
export const SANDBOX_ROOT = '/usr/lib/virtwire';

/** The program of a package, from where its package.json lies. */
function programOf(packageJson: string): string {
  const directory = realpathSync(dirname(packageJson));
  const source = join(directory, 'src', 'main.ts');
  return existsSync(source) ? source : join(directory, 'dist', 'main.js');
}

function rootOf(program: string): string {
  for (let at = dirname(program); at !== '/'; at = dirname(at)) {
    if (existsSync(join(at, 'node_modules', '@virtwire'))) return at;
  }
  throw new VirtwireError('MissingFile', `no node_modules with @virtwire above ${program}: run npm run setup`);
}

/** Finds the installation that this very file belongs to. */
export function findInstallation(): Installation {
  const require = createRequire(import.meta.url);
  const launcher = programOf(require.resolve('@virtwire/launcher/package.json'));
  const root = rootOf(launcher);
  const node = join(root, 'node_modules', '.bin', 'node');
  if (!existsSync(node)) throw new VirtwireError('MissingFile', `${node} is missing: run npm run setup`);
  return {
    root,
    node: relative(root, node),
    nodeArgs: launcher.endsWith('.ts') ? ['-C', '@virtwire/source'] : [],
    launcher: relative(root, launcher),
    virtwire: relative(root, programOf(require.resolve('@virtwire/virtwire/package.json'))),
  };
}
