import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyDescriptors } from '@virtwire/host';
import { connect } from '@virtwire/libvirt';
import type { Connection, Domain } from '@virtwire/libvirt';
import { startFakeDaemon } from '@virtwire/libvirt/fake';
import { privateDaemonObstacle, startPrivateDaemon, tinyDomainXml } from '@virtwire/libvirt/testing';
import type { PrivateDaemon } from '@virtwire/libvirt/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './support/sandbox.ts';

/** Paths of what a process has open. */
function openPaths(pid: number): readonly string[] {
  return fs.readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [fs.readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

/** The QEMU process of a domain of this daemon. */
function qemuPid(daemon: PrivateDaemon, name: string): number {
  const files = fs.readdirSync(daemon.directory, { recursive: true, encoding: 'utf8' });
  const file = files.find((path) => path.endsWith(`/${name}.pid`)) ?? '';
  return Number(fs.readFileSync(join(daemon.directory, file), 'utf8'));
}

/** A file that nobody can open by its path, as it has none any more. */
function openNameless(directory: string, name: string): { readonly fd: number; readonly path: string } {
  const path = join(directory, name);
  fs.writeFileSync(path, Buffer.alloc(1 << 20));
  const fd = fs.openSync(path, 'r+');
  fs.unlinkSync(path);
  return { fd, path: `${path} (deleted)` };
}

const DISK = `<disk type='file'><driver name='qemu' type='raw'/><source file='/nowhere/disk' fdgroup='storage'/>
  <target dev='vda' bus='virtio'/></disk>`;

interface Scene extends AsyncDisposable {
  readonly uri: string;
  readonly socketPath: string;
  /** A real daemon. */
  readonly daemon: PrivateDaemon | undefined;
}

async function startScene(kind: string): Promise<Scene> {
  if (kind === 'fake daemon') return Object.assign(await startFakeDaemon(), { daemon: undefined });
  const daemon = await startPrivateDaemon(kind.includes('session') ? { mode: 'session' } : {});
  const { uri, socketPath } = daemon;
  return { uri, socketPath, daemon, [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose]() };
}

describe.each(['fake daemon', 'libvirtd, system', 'libvirtd, session of another user'])('%s', (kind) => {
  const obstacle = kind === 'fake daemon' ? undefined : privateDaemonObstacle();
  let directory: string;
  let scene: Scene;
  let connection: Connection;
  const open = (): Promise<Connection> => connect({ ...target(), copyDescriptors });
  const target = () => ({ uri: scene.uri, socketPath: scene.socketPath });
  const opened = (pid: number | undefined): readonly string[] =>
    openPaths(pid ?? 0).filter((path) => path.startsWith(directory));

  async function define(name: string, devices = ''): Promise<Domain> {
    return connection.defineDomainXml(tinyDomainXml({ name, devices }));
  }

  beforeAll(async () => {
    if (obstacle !== undefined) throw new Error(obstacle);
    directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'virtwire-passed-')));
    scene = await startScene(kind);
    connection = await open();
  }, 90_000);

  afterAll(async () => {
    await connection.close();
    await scene[Symbol.asyncDispose]();
    fs.rmSync(directory, { recursive: true });
  });

  test('a guest starts from a disk that only the client could open', { timeout: 60_000 }, async () => {
    const domain = await define('passed', DISK);
    await expect(domain.create()).rejects.toMatchObject({
      kind: 'Daemon',
      code: 8,
      domain: 10,
      message: "invalid argument: file descriptor group 'storage' was not associated with the domain",
    });
    const file = openNameless(directory, 'disk');
    const passing = domain.fdAssociate('storage', [file.fd]);
    fs.closeSync(file.fd);
    await passing;
    expect(opened(process.pid)).toEqual([]);
    await domain.create();
    const { daemon } = scene;
    if (daemon !== undefined) expect(new Set(opened(qemuPid(daemon, 'passed')))).toEqual(new Set([file.path]));
    await domain.destroy();
    // The daemon keeps them for the next start.
    await domain.create();
    await domain.destroy();
    await domain.undefine();
    if (daemon !== undefined) expect(opened(daemon.pid)).toEqual([]);
  });

  test('the daemon’s own refusals', async () => {
    const domain = await define('refused');
    const { fd } = openNameless(directory, 'refused');
    await expect(domain.fdAssociate('x', [])).rejects.toMatchObject({
      code: 8,
      domain: 20,
      message: 'nfds in virDomainFDAssociate must not be zero',
    });
    await expect(domain.fdAssociate('x', [fd], 64)).rejects.toMatchObject({
      code: 8,
      domain: 10,
      message: 'unsupported flags (0x40) in function qemuDomainFDAssociate',
    });
    const ghost = connection.domain({ name: 'ghost', uuid: '00000000-0000-4000-8000-000000000009', id: -1 });
    await expect(ghost.fdAssociate('x', [fd])).rejects.toMatchObject({ code: 42 });
    fs.closeSync(fd);
    await domain.undefine();
  });

  test('stay in step with all other calls of the connection, and end with it', async () => {
    const domain = await define('busy');
    const { fd, path } = openNameless(directory, 'busy');
    const other = await open();
    const same = other.domain(domain.ref);
    const long = `<!-- ${'x'.repeat(300_000)} -->`;
    const work = Array.from({ length: 120 }, (_, i) => {
      if (i % 4 === 0) return same.fdAssociate(`group-${i}`, [fd, fd, fd]).then(() => 'passed');
      if (i % 4 === 1) return other.getType();
      if (i % 4 === 2) return same.getState().then(({ state }) => String(state));
      // More than a socket takes at once.
      return other.defineDomainXml(`${tinyDomainXml({ name: 'busy', uuid: domain.uuid })}${long}`).then((d) => d.name);
    });
    const answers = await Promise.all(work);
    expect(answers).toEqual(Array.from({ length: 120 }, (_, i) => ['passed', 'QEMU', '5', 'busy'][i % 4]));
    expect(opened(process.pid).filter((open) => open === path)).toHaveLength(1);
    const { daemon } = scene;
    if (daemon !== undefined) expect(opened(daemon.pid).filter((open) => open === path)).toHaveLength(90);
    await other.close();
    if (daemon !== undefined) await eventually('the end of what was passed', () => opened(daemon.pid).length === 0);
    fs.closeSync(fd);
    await domain.undefine();
  });

  test('a daemon that does not read does not make descriptors pile up', async () => {
    const { daemon } = scene;
    if (daemon === undefined) return;
    const domain = await define('stopped');
    const { fd, path } = openNameless(directory, 'stopped');
    const impatient = await connect({ ...target(), copyDescriptors, reconnect: false });
    daemon.pause();
    const same = impatient.domain(domain.ref);
    const calls = Array.from({ length: 20 }, () => same.fdAssociate('x', [fd], 0, { timeoutMs: 300 }));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(20);
    await eventually('the end of the copies', () => opened(process.pid).filter((open) => open === path).length === 1);
    daemon.resume();
    expect(await impatient.getType()).toBe('QEMU');
    await impatient.close();
    fs.closeSync(fd);
    await domain.undefine();
  });
});
