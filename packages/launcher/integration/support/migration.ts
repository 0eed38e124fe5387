import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { connect as dial, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { provideKernel, requestOf } from './guest.ts';
import type { HeardEvent, LauncherPod } from './sandbox.ts';
import { startLauncherPod } from './sandbox.ts';

const QEMU_UID = 107;
const PATIENT = { timeoutMs: 60_000 };

/** Options of a migration as handlers of v1.9 send them. */
export const OPTIONS = {
  Bandwidth: '0',
  ProgressTimeout: 150,
  CompletionTimeoutPerGiB: 150,
  MaxDowntimeMs: 900,
  UnsafeMigration: false,
  AllowAutoConverge: false,
  AllowPostCopy: false,
  ParallelMigrationThreads: 8,
  AllowWorkloadDisruption: false,
  StallDetectorOptions: null,
  Compression: null,
};

function join2(one: Socket, other: Socket): void {
  const end = (): void => {
    one.destroy();
    other.destroy();
  };
  one.on('error', end).on('close', end);
  other.on('error', end).on('close', end);
  one.pipe(other);
  other.pipe(one);
}

/** The sockets of a migration, led from the source's pod to the target's as the handlers of both nodes do. */
export interface Bridge extends AsyncDisposable {
  /** Cuts what goes through it, and lets nothing more through. */
  cut(): void;
}

/** Leads the streams of migrations of a VM from one pod to the other. */
export async function bridgePods(source: LauncherPod, target: LauncherPod, uid: string): Promise<Bridge> {
  // Sockets have short names only, and pods' directories long ones.
  const dir = mkdtempSync(join(tmpdir(), 'mb-'));
  symlinkSync(source.root, join(dir, 's'));
  symlinkSync(target.root, join(dir, 't'));
  mkdirSync(join(dir, 's/kubevirt/migrationproxy'), { recursive: true });
  const routes = [
    [`kubevirt/migrationproxy/${uid}-source.sock`, 'libvirt/libvirt-sock'],
    ...[49152, 49153].map((port) => {
      const path = `kubevirt/migrationproxy/${uid}-${port}-source.sock`;
      return [path, path];
    }),
  ];
  const open = new Set<Socket>();
  const servers: Server[] = [];
  for (const [from = '', to = ''] of routes) {
    const server = createServer((accepted) => {
      const out = dial(join(dir, 't', to));
      for (const socket of [accepted, out]) {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
      }
      join2(accepted, out);
    });
    await new Promise<void>((resolve) => server.listen(join(dir, 's', from), resolve));
    chownSync(join(dir, 's', from), QEMU_UID, QEMU_UID);
    servers.push(server);
  }
  const cut = (): void => {
    for (const server of servers) server.close();
    for (const socket of open) socket.destroy();
  };
  return {
    cut,
    [Symbol.asyncDispose]: () => {
      cut();
      rmSync(dir, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}

/** The VMI as virt-controller hands a migration over. */
export function migrating(vmi: Vmi, migrationUid: string, status: Partial<NonNullable<Vmi['status']>> = {}): Vmi {
  const migrationState = { migrationUid, sourceNode: 'node01', targetNode: 'node02', targetPod: 'virt-launcher-test' };
  return {
    ...vmi,
    status: {
      ...vmi.status,
      phase: 'Running',
      runtimeUser: QEMU_UID,
      migrationState,
      migrationMethod: 'LiveMigration',
      migrationTransport: 'Unix',
      ...status,
    },
  };
}

/** A pod with a launcher, its client, and commands in its guest. */
export interface Side extends AsyncDisposable {
  readonly pod: LauncherPod;
  readonly client: CmdClient;
  /** Runs a shell command in the guest; its output. */
  run(command: string): Promise<string>;
}

/** Starts a launcher that is ready for requests. */
export async function startSide(flags: readonly string[], domainName: string, asRoot = false): Promise<Side> {
  const pod = await startLauncherPod(flags, { asRoot });
  provideKernel(pod);
  await pod.ear.open();
  await pod.waitUntilReady();
  const client = await pod.connect();
  return {
    pod,
    client,
    async run(command) {
      const request = { domainName, Command: '/bin/sh', Args: ['-c', command], timeoutSeconds: 20 };
      const { exitCode, stdOut } = unwrap(await client.exec(request, PATIENT));
      if (exitCode !== 0) throw new Error(`${command} exits with ${exitCode}: ${stdOut}`);
      return stdOut.trim();
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await pod[Symbol.asyncDispose]();
    },
  };
}

type TargetOptions = NonNullable<Parameters<CmdClient['syncMigrationTarget']>[0]>['options'];

/** Prepares the target and starts the migration, as the handlers of both nodes do. */
export async function startMigration(
  source: Side,
  target: Side,
  vmi: Vmi,
  options: object = OPTIONS,
  targetOptions: TargetOptions = requestOf(vmi).options,
): Promise<void> {
  unwrap(await target.client.syncMigrationTarget({ ...requestOf(vmi), options: targetOptions }, PATIENT));
  const request = { vmi: { vmiJson: Buffer.from(renderVmiJson(vmi)) }, options: Buffer.from(JSON.stringify(options)) };
  unwrap(await source.client.migrateVirtualMachine(request, PATIENT));
}

/** Metadata of the migration in an event. */
export function migrationOf({ domain }: HeardEvent) {
  return domain.Spec.Metadata.KubeVirt.Migration;
}

/** Waits until a launcher tells of the end of a migration. */
export function hearEnd({ pod }: Side, migrationUid: string): Promise<HeardEvent> {
  return pod.ear.hear(`the end of ${migrationUid}`, (event) => {
    const { UID, EndTimestamp } = migrationOf(event) ?? {};
    return UID === migrationUid && EndTimestamp !== undefined;
  });
}
