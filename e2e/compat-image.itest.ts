import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startEmulatedLauncher } from '@virtwire/compat';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const run = promisify(execFile);
const canRun = process.getuid?.() === 0 && ['mmdebstrap', 'buildah'].every((tool) => existsSync(`/usr/bin/${tool}`));
const MEBIBYTE = 1_048_576;
const BUILD_LIMIT_MS = 590_000;
/** What the suite needs of what container engines give by default. */
const CAPABILITIES = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_KILL'];

/** What a container of the image printed, and how it ended. */
interface Outcome {
  readonly code: number;
  readonly output: string;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly isReadOnly?: boolean;
}

interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Env: readonly string[];
  readonly WorkingDir: string;
  readonly User: string;
}

let dir = '';
let rootfs = '';
let image: ImageConfig | undefined;

const storage = (): readonly string[] => [
  ...['--root', join(dir, 'storage'), '--runroot', join(dir, 'run'), '--storage-driver', 'vfs'],
];
const buildah = (...args: readonly string[]): string =>
  execFileSync('buildah', [...storage(), ...args], { encoding: 'utf8' }).trim();

/** Runs a container of the image with runc, its root read-only and without network. */
async function inContainer(
  args: readonly string[],
  mounts: readonly Mount[],
  options: { readonly entrypoint?: readonly string[]; readonly user?: string } = {},
): Promise<Outcome> {
  if (image === undefined) throw new Error('the image was not built');
  const bundle = mkdtempSync(join(dir, 'bundle-'));
  execFileSync('runc', ['spec', '--bundle', bundle]);
  const spec = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8')) as {
    root: object;
    process: object;
    mounts: object[];
  };
  const [uid = 0, gid = 0] = (options.user ?? image.User).split(':').map(Number);
  spec.root = { path: rootfs, readonly: true };
  spec.process = {
    ...spec.process,
    ...{ terminal: false, user: { uid, gid }, env: image.Env, cwd: image.WorkingDir },
    capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
    args: [...(options.entrypoint ?? image.Entrypoint), ...args],
  };
  const binds = mounts.map(({ source, target, isReadOnly = false }) => ({
    ...{ destination: target, type: 'bind', source },
    options: ['rbind', isReadOnly ? 'ro' : 'rw'],
  }));
  const tmp = { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['mode=1777'] };
  writeFileSync(join(bundle, 'config.json'), JSON.stringify({ ...spec, mounts: [...spec.mounts, tmp, ...binds] }));
  try {
    const name = `compat-image-${process.pid}-${Date.now()}`;
    const { stdout, stderr } = await run('runc', ['--root', join(dir, 'runc'), 'run', '--bundle', bundle, name]);
    return { code: 0, output: stdout + stderr };
  } catch (caught) {
    const { code, stdout = '', stderr = '' } = caught as { code?: number; stdout?: string; stderr?: string };
    return { code: code ?? -1, output: stdout + stderr };
  }
}

/** A folder that the user of the image may read. */
function folder(name: string, fill: (path: string) => void): string {
  const path = join(dir, name);
  mkdirSync(path, { mode: 0o777 });
  execFileSync('chmod', ['777', path]);
  fill(path);
  return path;
}

describe.runIf(canRun)('the image of the compatibility suite', { timeout: BUILD_LIMIT_MS }, () => {
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'virtwire-image-'));
    const archive = join(dir, 'compat.tar');
    await run('sh', [join(ROOT, 'deploy/compat/build-image.sh'), archive]);
    expect(statSync(archive).size).toBeLessThan(100 * MEBIBYTE);
    const container = buildah('from', `oci-archive:${archive}`);
    rootfs = buildah('mount', container);
    const { OCIv1 } = JSON.parse(buildah('inspect', container)) as { OCIv1: { config: ImageConfig } };
    image = OCIv1.config;
  }, BUILD_LIMIT_MS);
  afterAll(() => {
    if (rootfs !== '') buildah('umount', '--all');
    rmSync(dir, { recursive: true, force: true });
  });

  test('runs the matrix and leaves the reports', async () => {
    const reports = folder('reports', () => undefined);
    const args = ['matrix', '--releases', 'v1.9', '--scenarios', 'first-start', '--html', '/reports/matrix.html'];
    const outcome = await inContainer(args, [{ source: reports, target: '/reports' }]);
    expect(outcome.output).toContain('2 passed, 0 declared, 0 not built, 0 failed');
    expect(outcome.code).toBe(0);
    expect(readFileSync(join(reports, 'matrix.html'), 'utf8')).toContain('Nothing is broken.');
  });

  test('compares proto files, and tells of a break by its exit code', async () => {
    const proto = folder('proto', (path) => cpSync(join(ROOT, 'proto'), path, { recursive: true }));
    const mount = { source: proto, target: '/proto', isReadOnly: true };
    expect(await inContainer(['schema', '/proto'], [mount])).toMatchObject({ code: 0 });
    const broken = folder('broken', (path) => {
      cpSync(join(ROOT, 'proto'), path, { recursive: true });
      const file = execFileSync('grep', ['-rl', 'rpc PauseVirtualMachine', path], { encoding: 'utf8' }).trim();
      writeFileSync(file, readFileSync(file, 'utf8').replace('rpc PauseVirtualMachine', 'rpc HaltVirtualMachine'));
    });
    const outcome = await inContainer(['schema', '/proto'], [{ ...mount, source: broken }]);
    expect(outcome).toMatchObject({ code: 1, output: expect.stringContaining('PauseVirtualMachine') as string });
    expect(await inContainer(['schema', '/nothing'], [])).toMatchObject({ code: 2 });
  });

  test('replays recorded traffic', async () => {
    const recorded = folder('recorded', (path) =>
      cpSync(join(ROOT, 'testdata/wire-samples.ndjson.br'), join(path, 's.ndjson.br')),
    );
    const outcome = await inContainer(
      ['replay', '/in/s.ndjson.br'],
      [{ source: recorded, target: '/in', isReadOnly: true }],
    );
    expect(outcome).toMatchObject({ code: 0, output: expect.stringContaining('0 problems') as string });
  });

  test("runs the Job's command against the launchers of a node", async () => {
    const job = readFileSync(join(ROOT, 'deploy/compat/kubernetes-job.yaml'), 'utf8');
    const [, block = ''] = /args:\n\s+- \|\n([^]*?)\n\s+securityContext:/.exec(job) ?? [];
    const script = block.replaceAll(/^ {14}/gm, '');
    expect(script).toContain('virtwire-compat probe --socket');
    const pods = folder('p', () => undefined);
    const socketsDir = join(pods, 'uid1/volumes/kubernetes.io~empty-dir/sockets');
    const vmi = { namespace: 'default', name: 'vm1', uid: 'u1' };
    await using launcher = await startEmulatedLauncher({ line: 'v1.6', vmi, socketsDir, shareDir: join(dir, 'share') });
    const mounts = [{ source: pods, target: '/pods', isReadOnly: true }];
    const outcome = await inContainer(['-c', script], mounts, { entrypoint: ['sh'], user: '0:0' });
    expect(outcome.output).toMatch(/RPCs as in .*v1\.6/);
    expect(outcome.code).toBe(0);
    expect(launcher.calls.length).toBeGreaterThan(5);
  });
});
