import { join } from 'node:path';
import { connect } from '@virtwire/libvirt';
import type { Connection } from '@virtwire/libvirt';
import type { cmdV1 } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';
import { requestOf } from './guest.ts';
import { bridgePods, startSide } from './migration.ts';
import type { Bridge, Side } from './migration.ts';
import type { LauncherPod } from './sandbox.ts';
import { eventually } from './sandbox.ts';

const AGENT_CONNECTED = 'GuestAgentLifecycle event state 1 with reason 2 received';
/** An emulated guest on a busy machine takes its time. */
const BOOT_LIMIT_MS = 240_000;

/** Both pods, the way between them, and a guest in the first. */
export interface Scene extends AsyncDisposable {
  readonly source: Side;
  readonly target: Side;
  readonly bridge: Bridge;
  /** The source's libvirt. */
  readonly libvirt: Connection;
  readonly domainName: string;
  /** Checksum of the noise in the guest's memory, and the name of its boot. */
  readonly noise: string;
}

/** How a scene differs from the plain one. */
export interface SceneOptions {
  /** More flags of both launchers. */
  readonly flags?: readonly string[];
  /** Options of the start. */
  readonly options?: cmdV1.VirtualMachineOptions;
  readonly asRoot?: boolean;
  /** Puts something into both pods before there is a VM. */
  readonly provide?: (pod: LauncherPod) => void;
}

/** What the guest's memory holds. */
export function memoryOf(side: Side): Promise<string> {
  return side.run('sha256sum </run/noise; cat /proc/sys/kernel/random/boot_id');
}

async function occupyMemory(side: Side): Promise<void> {
  await side.run('dd if=/dev/urandom of=/run/noise bs=1M count=16 2>/dev/null');
  const pulse = 'date +%s >/run/pulse.new; mv /run/pulse.new /run/pulse; sleep 0.1';
  await side.run(`(while :; do ${pulse}; done) >/dev/null 2>&1 &`);
}

/** Boots the guest in the first of two pods, with noise in its memory and something that goes on in it. */
export async function startScene(
  vmi: Vmi,
  { flags = [], options, asRoot = false, provide = () => undefined }: SceneOptions = {},
): Promise<Scene> {
  const { name, namespace, uid } = vmi.metadata;
  const all = ['--name', name, '--namespace', namespace, '--uid', uid, ...flags];
  const domainName = `${namespace}_${name}`;
  const stack = new AsyncDisposableStack();
  try {
    const source = stack.use(await startSide(all, domainName, asRoot));
    const target = stack.use(await startSide(all, domainName, asRoot));
    for (const { pod } of [source, target]) provide(pod);
    const bridge = stack.use(await bridgePods(source.pod, target.pod, uid));
    const request = { ...requestOf(vmi), ...(options === undefined ? {} : { options }) };
    unwrap(await source.client.syncVirtualMachine(request));
    await eventually(
      'the guest agent',
      () => source.pod.logs.some(({ msg }) => msg === AGENT_CONNECTED),
      BOOT_LIMIT_MS,
    );
    await occupyMemory(source);
    const uri = asRoot ? 'qemu:///system' : 'qemu:///session';
    const libvirt = stack.use(await connect({ uri, socketPath: join(source.pod.root, 'libvirt/libvirt-sock') }));
    const scene = { source, target, bridge, libvirt, domainName, noise: await memoryOf(source) };
    return { ...scene, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (caught) {
    await stack.disposeAsync();
    throw caught;
  }
}

/** Waits until memory is on its way. */
export async function untilCopying({ libvirt, domainName }: Scene): Promise<void> {
  const domain = await libvirt.lookupDomainByName(domainName);
  let remaining = 0;
  await eventually('the copy of memory', () => {
    void domain.getJobStats().then(
      ({ params }) => (remaining = params.number('data_remaining') ?? 0),
      () => 0,
    );
    return remaining > 0;
  });
}

/** How long the guest stood still at the end of each migration from the source, in ms. */
export async function notePauses({ libvirt }: Pick<Scene, 'libvirt'>): Promise<readonly number[]> {
  const pauses: number[] = [];
  await libvirt.onDomainEvent('jobCompleted', ({ params }) => {
    pauses.push(...params.filter(({ field }) => field === 'downtime').map(({ value }) => Number(value)));
  });
  return pauses;
}
