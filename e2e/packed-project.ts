import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');
const SCOPE = '@virtwire/';

/** A project outside of the repository that has our packages from their tarballs. */
export interface PackedProject extends Disposable {
  readonly directory: string;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const readManifest = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;

const dependenciesOf = (manifest: Manifest): readonly string[] => [
  ...Object.keys(manifest.dependencies ?? {}),
  ...Object.keys(manifest.optionalDependencies ?? {}),
];

/** Our packages that some of them need, those included, by what their manifests declare. */
function ownPackages(names: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    for (const dependency of dependenciesOf(readManifest(packageDirectory(name)))) {
      if (dependency.startsWith(SCOPE)) visit(dependency);
    }
  };
  for (const name of names) visit(name);
  return [...found];
}

function packageDirectory(name: string): string {
  return join(ROOT, 'packages', name.slice(SCOPE.length));
}

/**
 * Builds packages, packs them and installs the tarballs into an empty project, with no network: what they depend on
 * is copied from this repository's node_modules, by what their manifests declare and nothing else.
 */
export async function installPacked(names: readonly string[]): Promise<PackedProject> {
  const packages = ownPackages(names);
  await build(packages);
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-stranger-'));
  const dispose = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    // Named as dependencies, so that npm takes what is there instead of asking a registry.
    const dependencies = copyThirdParties(packages, join(directory, 'node_modules'));
    const manifest = { name: 'stranger', private: true, type: 'module', dependencies };
    writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
    const tarballs = await pack(packages, join(directory, 'tarballs'));
    await run('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', ...tarballs], {
      cwd: directory,
    });
    return { directory, [Symbol.dispose]: dispose };
  } catch (caught) {
    dispose();
    throw caught;
  }
}

async function build(packages: readonly string[]): Promise<void> {
  const nx = join(ROOT, 'node_modules/.bin/nx');
  // No daemon: this may itself run inside a task of nx.
  const env = { ...process.env, NX_DAEMON: 'false' };
  await run(nx, ['run-many', '--target=build', `--projects=${packages.join(',')}`], { cwd: ROOT, env });
}

async function pack(packages: readonly string[], destination: string): Promise<readonly string[]> {
  mkdirSync(destination);
  for (const name of packages) {
    const args = ['pack', '--ignore-scripts', '--pack-destination', destination, packageDirectory(name)];
    await run('npm', args, { cwd: ROOT });
  }
  return readdirSync(destination).map((file) => join(destination, file));
}

/**
 * Copies third parties with all that they need; a version of its own stays below the package that has it.
 *
 * @returns names and versions.
 */
function copyThirdParties(packages: readonly string[], target: string): Readonly<Record<string, string>> {
  const copied: Record<string, string> = {};
  const seen = new Set<string>();
  const visit = (name: string, from: string): void => {
    const source = findInstalled(name, from);
    if (source === undefined || seen.has(source)) return;
    seen.add(source);
    const inModules = source.slice(source.indexOf('/node_modules/') + '/node_modules/'.length);
    const manifest = readManifest(source);
    if (!inModules.includes('/node_modules/')) {
      cpSync(source, join(target, inModules), { recursive: true });
      linkPrograms(manifest, target);
      copied[name] = manifest.version;
    }
    for (const dependency of dependenciesOf(manifest)) visit(dependency, source);
  };
  for (const name of packages) {
    const directory = packageDirectory(name);
    const foreign = dependenciesOf(readManifest(directory)).filter((dependency) => !dependency.startsWith(SCOPE));
    for (const dependency of foreign) visit(dependency, directory);
  }
  return copied;
}

/** Makes the links in `.bin`: npm takes a package without them for damaged and asks a registry for it. */
function linkPrograms({ name, bin = {} }: Manifest, target: string): void {
  const programs = typeof bin === 'string' ? { [name.replace(/^.*\//, '')]: bin } : bin;
  mkdirSync(join(target, '.bin'), { recursive: true });
  for (const [program, path] of Object.entries(programs)) {
    symlinkSync(join('..', name, path), join(target, '.bin', program));
  }
}

/** Looks a package up as Node does; undefined for an optional one that this machine has no use for. */
function findInstalled(name: string, from: string): string | undefined {
  for (let directory = from; directory.startsWith(ROOT); directory = dirname(directory)) {
    const candidate = join(directory, 'node_modules', name);
    if (existsSync(candidate)) return candidate;
  }
  return undefined;
}
