import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cmdV1 } from '@virtwire/shared-proto';
import { type FakeDaemon, type FakeDomain, startFakeDaemon } from '@virtwire/libvirt/fake';
import { domainName, renderVmiJson } from '@virtwire/vm-model';
import type { VmIdentity } from '../emulate/api.ts';
import { dialGrpc, type GrpcConnection, type RawAnswer } from '../emulate/transport/grpc-client.ts';
import { createNodeDirs, type NodeDirs } from '../matrix/node-dirs.ts';
import { startOurLauncher } from '../matrix/our-launcher.ts';
import { keepStandIn } from '../matrix/qemu-stand-in.ts';
import type { RunningLauncher } from '../matrix/subjects.ts';
import { POD_UID, scheduledVmi } from '../matrix/test-vmi.ts';
import type { RecordedState } from './recorded-state.ts';

const CALL_LIMIT_MS = 25_000;
const HABIT = { authority: 'localhost', userAgent: 'replay' };
const SYNC = '/kubevirt.cmd.v1.Cmd/SyncVirtualMachine';

/** Our launcher in the place of a recorded one, for one VM, on a libvirt daemon in memory. */
export class LauncherSession implements AsyncDisposable {
  readonly #vm: VmIdentity;
  readonly #dirs: NodeDirs = createNodeDirs();
  readonly #stack = new AsyncDisposableStack();
  #daemon: FakeDaemon | undefined;
  #launcher: RunningLauncher | undefined;
  #connection: GrpcConnection | undefined;

  constructor(vm: VmIdentity) {
    this.#vm = vm;
    this.#stack.use(this.#dirs);
  }

  /** Brings the VM into the state that was recorded before the next call. @returns false when that cannot be done. */
  async align(state: RecordedState): Promise<boolean> {
    await this.#running();
    if (state.domain === 'none') return this.#domain === undefined;
    const mustStart = state.domain === 'Shutoff' ? this.#domain === undefined : this.#domain?.isActive !== true;
    if (mustStart) await this.sync();
    return this.#follow(state);
  }

  /** Calls our launcher with the recorded bytes. */
  async call(method: string, request: Uint8Array): Promise<RawAnswer> {
    const connection = await this.#running();
    return connection.call(method, request, CALL_LIMIT_MS);
  }

  /** Syncs a VM of the recorded names that needs nothing of this machine: neither disks nor networks. */
  async sync(phase = 'Scheduled'): Promise<RawAnswer> {
    const vmi = scheduledVmi((one) => {
      one.metadata = { ...one.metadata, ...this.#vm };
      one.spec.domain.devices = { ...one.spec.domain.devices, disks: [] };
      one.spec.volumes = [];
      one.status = { ...one.status, phase } as NonNullable<typeof one.status>;
    });
    const message = { vmi: { vmiJson: Buffer.from(renderVmiJson(vmi)) }, options: {} };
    return this.call(SYNC, cmdV1.VMIRequest.encode(cmdV1.VMIRequest.fromPartial(message)).finish());
  }

  get #domain(): FakeDomain | undefined {
    const name = domainName(this.#vm.namespace, this.#vm.name);
    return this.#daemon?.hypervisor.domains.find((domain) => domain.name === name);
  }

  #follow(state: RecordedState): boolean {
    const domain = this.#domain;
    if (domain === undefined) return false;
    if (state.domain === 'Shutoff') {
      if (domain.isActive) domain.powerOffFromGuest();
      if (domain.isActive) domain.destroy();
      return true;
    }
    if (!domain.isActive) return false;
    if (state.domain === 'Paused') domain.suspend();
    else if (state.domain === 'Running') domain.resume();
    if (state.hasAgent && !domain.isAgentConnected && state.domain === 'Running') domain.connectAgent();
    if (!state.hasAgent && domain.isAgentConnected) domain.disconnectAgent();
    return state.domain === 'Running' || state.domain === 'Paused';
  }

  /** The connection to a launcher that runs: a deletion ends it, as it has to. */
  async #running(): Promise<GrpcConnection> {
    if (this.#launcher?.hasEnded === false && this.#connection?.isOpen === true) return this.#connection;
    this.#connection?.[Symbol.dispose]();
    if (this.#launcher?.hasEnded !== false) await this.#start();
    const socket = join(this.#dirs.pod(POD_UID).socketsDir, 'launcher-sock');
    this.#connection = await dialGrpc(socket, HABIT);
    return this.#connection;
  }

  async #start(): Promise<void> {
    const scratchDir = join(this.#dirs.root, 'l');
    mkdirSync(scratchDir, { recursive: true });
    await this.#daemon?.[Symbol.asyncDispose]();
    const libvirtSocket = join(this.#dirs.root, 'libvirt');
    const daemon = await startFakeDaemon({ uri: 'qemu:///session', socketPath: libvirtSocket });
    this.#daemon = daemon;
    this.#stack.use(daemon);
    const launcher = await startOurLauncher({
      ...{ vm: this.#vm, pod: this.#dirs.pod(POD_UID), scratchDir, libvirtSocket },
      log: () => undefined,
    });
    this.#launcher = launcher;
    this.#stack.defer(() => launcher.kill());
    this.#stack.use(keepStandIn(launcher.qemuPidFile, () => this.#domain?.isActive === true));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection?.[Symbol.dispose]();
    await this.#stack.disposeAsync();
  }
}
