import { domainName, quantityValue, renderDomainElementXml } from '@virtwire/vm-model';
import type { DomainMemoryDevice, DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { memoryDeviceOf } from '../converter/memory-device.ts';
import { LauncherError } from '../errors.ts';
import type { LibvirtPort } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';

/** What changing memory needs. */
export interface MemoryUpdaterDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getXml' | 'attachDevice' | 'updateDevice'>;
  readonly mutex: Mutex;
  readonly parseSpec: (xml: string) => DomainSpec;
}

const LIVE = 1;
const LIVE_AND_CONFIG = 3;
const FAILURE = 'failed to update Guest Memory: ';
/** With this annotation KubeVirt's own tests ask for a failure. */
const TEST_ANNOTATION = 'kubevirt.io/func-test-memory-hotplug-fail';

/**
 * Gives a running guest the memory that its VMI asks for: plugs the device in, or changes what it is asked for. The
 * guest follows in its own time.
 *
 * @throws {LauncherError} `ConvertFailed` or `BadRequest` with KubeVirt's message; libvirt's refusal as it is.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, UpdateGuestMemory
 */
export async function updateMemory(
  { libvirt, mutex, parseSpec }: MemoryUpdaterDeps,
  vmi: Vmi,
  log: Logger,
): Promise<void> {
  if (vmi.metadata.annotations?.[TEST_ANNOTATION] !== undefined) throw new LauncherError('BadRequest', TEST_ANNOTATION);
  await mutex.run(async () => {
    const domain = await prefixed(libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name)));
    const wanted = memoryDeviceOf(vmi);
    const live = parseSpec(await prefixed(libvirt.getXml(domain, 0))).Devices.Memory;
    if (live === undefined) {
      await logged('attaching', libvirt.attachDevice(domain, renderMemory(wanted), LIVE_AND_CONFIG));
    } else {
      const device = { ...live, Target: { ...live.Target, Requested: wanted.Target?.Requested } };
      await logged('updating', libvirt.updateDevice(domain, renderMemory(device), LIVE));
    }
    log.info(`hotplugging guest memory to ${quantityValue(vmi.spec.domain.memory?.guest)}`);
  });

  async function logged(doing: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (caught) {
      log.error({ reason: caught }, `${doing} virtio-mem device`);
      throw caught;
    }
  }
}

/** Without the current size where libvirt has not given one: it is the guest's to say. */
function renderMemory(device: DomainMemoryDevice): string {
  return renderDomainElementXml('MemoryDevice', 'memory', device).replace('<current unit="">0</current>', '');
}

async function prefixed<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', FAILURE);
  }
}
