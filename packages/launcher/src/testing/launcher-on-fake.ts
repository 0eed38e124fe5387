import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeDaemon } from '@virtwire/libvirt/fake';
import type { FakeDaemon, FakeDaemonOptions } from '@virtwire/libvirt/fake';
import { connectCmd, serveNotify, vmiRequest } from '@virtwire/shared-proto';
import type { CmdClient, RpcServer } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { applyVmiDefaults, clusterDefaults, parseDomainJson, parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Domain, Vmi } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { systemClock } from '../config/clock.ts';
import { ensureDirectories } from '../config/directories.ts';
import type { LauncherFlags } from '../config/flags.ts';
import { parseFlags } from '../config/flags.ts';
import { launcherPaths } from '../config/paths.ts';
import type { LauncherProcess } from '../launcher.ts';
import { runLauncher } from '../launcher.ts';
import type { RunningDaemons } from '../libvirt-daemon/start.ts';

const UID = 'f0000000-0000-4000-8000-000000000001';
const LIMIT_MS = 30_000;

/** Waits until `find` finds something. */
export async function eventually<T>(what: string, find: () => T | undefined | false): Promise<T> {
  const giveUpAtMs = Date.now() + LIMIT_MS;
  for (;;) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > giveUpAtMs) throw new Error(`${what} did not happen`);
    await sleep(5);
  }
}

/** A whole launcher in this process, on a libvirt daemon in memory and a handler's ear. */
export interface LauncherOnFake extends AsyncDisposable {
  /** Where the pod's directories lie: `private`, `share`, ... */
  readonly root: string;
  readonly daemon: FakeDaemon;
  readonly client: CmdClient;
  readonly events: readonly { readonly type: string; readonly domain: Domain }[];
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly request: ReturnType<typeof vmiRequest>;
  readonly vmi: Vmi;
  readonly domainName: string;
  /** Resolves when the launcher has ended; rejects with what it would die of. */
  readonly ended: Promise<void>;
  /** As if the pod was told to end. */
  terminate(): void;
  /** Stands for QEMU; the monitor watches its pid. */
  startQemu(): ChildProcess;
}

/** The VMI that launchers on a fake daemon are for, as a handler sends it. */
export function createVmi(): Vmi {
  const spec = { domain: { devices: { autoattachPodInterface: false } }, networks: [] };
  const metadata = { name: 'vm1', namespace: 'ns1', uid: UID };
  const vmi = parseVmiJson(JSON.stringify({ metadata, spec, status: { phase: 'Scheduled' } }));
  return applyVmiDefaults(vmi, clusterDefaults('amd64'), '11111111-2222-4333-8444-555555555555');
}

function flagsFor(root: string, flags: readonly string[]): LauncherFlags {
  return parseFlags([
    ...['--name', 'vm1', '--namespace', 'ns1', '--uid', UID, '--run-as-nonroot', '--allow-emulation'],
    ...['--kubevirt-share-dir', join(root, 'share'), '--ephemeral-disk-dir', join(root, 'ephemeral')],
    ...['--container-disk-dir', join(root, 'container-disks'), '--hotplug-disk-dir', join(root, 'hotplug-disks')],
    ...['--kubevirt-private-dir', join(root, 'private'), '--libvirt-run-dir', join(root, 'libvirt'), ...flags],
  ]);
}

/** What is different around a launcher. */
export interface LauncherSurroundings {
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** False: nobody takes its events. Default true. */
  readonly hasHandler?: boolean;
  /** False: events and lines are not kept, for a launcher that lives long. Default true. */
  readonly isRecorded?: boolean;
  /** Default: the links of this process' network namespace. */
  readonly podNetwork?: LauncherProcess['podNetwork'];
}

function daemonsOn(daemon: FakeDaemon): RunningDaemons {
  const stop = (): Promise<void> => Promise.resolve();
  const { socketPath } = daemon;
  return { name: 'libvirtd', socketPath, daemon: { starts: 1, pid: undefined, stop }, owns: () => false, stop };
}

function listen(pipe: string, hear: (type: string, domain: Domain) => void): Promise<RpcServer> {
  return serveNotify(pipe, {
    handleDomainEvent({ domainJSON, eventType }) {
      hear(eventType, parseDomainJson(Buffer.from(domainJSON).toString('utf8')));
    },
    handleK8sEvent: () => undefined,
  });
}

/** Starts a launcher; it is ready when this resolves. */
export async function startLauncherOnFake(
  extraFlags: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  guest: NonNullable<FakeDaemonOptions['guest']> = {},
  { clock = systemClock, hasHandler = true, isRecorded = true, podNetwork }: LauncherSurroundings = {},
): Promise<LauncherOnFake> {
  const root = mkdtempSync(join(tmpdir(), 'virtwire-launcher-fake-'));
  const daemon = await startFakeDaemon({ uri: 'qemu:///session', guest });
  const flags = flagsFor(root, extraFlags);
  const paths = launcherPaths(flags);
  ensureDirectories(flags);
  const events: { type: string; domain: Domain }[] = [];
  const hear = (type: string, domain: Domain): void => {
    if (isRecorded) events.push({ type, domain });
  };
  const ear = hasHandler ? await listen(paths.notifyPipe, hear) : undefined;
  const lines: Record<string, unknown>[] = [];
  const writeLine = (line: string): void => {
    if (isRecorded) lines.push(JSON.parse(line) as Record<string, unknown>);
  };
  const stopping = new AbortController();
  const log = createLogger('virt-launcher', { destination: { write: writeLine } });
  const stopSignal = stopping.signal;
  const daemons = daemonsOn(daemon);
  const world = { clock, log, verbosity: 2, daemons, writeLine, stopSignal };
  const ended = runLauncher({ flags, env, ...world, ...(podNetwork === undefined ? {} : { podNetwork }) });
  ended.catch(() => undefined);
  await Promise.race([eventually('readiness', () => existsSync(paths.readySocket)), ended]);
  const client = await connectCmd(paths.readySocket);
  const vmi = createVmi();
  const children: ChildProcess[] = [];
  const request = vmiRequest(renderVmiJson(vmi));
  const terminate = (): void => stopping.abort();
  const startQemu = (): ChildProcess => {
    const child = startStandIn(paths.qemuPidFile);
    children.push(child);
    return child;
  };
  async function dispose(): Promise<void> {
    client.close();
    for (const child of children) child.kill('SIGKILL');
    terminate();
    await ear?.stop(0);
    await Promise.race([ended.catch(() => undefined), sleep(100)]);
    await daemon.close();
    rmSync(root, { recursive: true, force: true });
  }
  const shown = { root, daemon, client, events, lines, request, vmi, domainName: 'ns1_vm1', ended };
  return { ...shown, terminate, startQemu, [Symbol.asyncDispose]: dispose };
}

function startStandIn(pidFile: string): ChildProcess {
  const child = spawn('sleep', ['3600'], { stdio: 'ignore' });
  mkdirSync(dirname(pidFile), { recursive: true });
  writeFileSync(pidFile, String(child.pid));
  return child;
}
