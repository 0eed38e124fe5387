import type { XmlElement } from '@virtwire/vm-model';

/** The order in which libvirt writes the children of some elements. */
const ORDER: Readonly<Record<string, readonly string[]>> = {
  domain: [
    ...['name', 'uuid', 'genid', 'title', 'description', 'metadata', 'maxMemory', 'memory', 'currentMemory'],
    ...['blkiotune', 'memtune', 'memoryBacking', 'vcpu', 'vcpus', 'iothreads', 'iothreadids', 'defaultiothread'],
    ...['cputune', 'numatune', 'resource', 'sysinfo', 'bootloader', 'bootloader_args', 'idmap', 'os'],
    ...['throttlegroups', 'features', 'cpu', 'clock', 'on_poweroff', 'on_reboot', 'on_crash', 'pm', 'perf'],
    ...['devices', 'seclabel', 'keywrap', 'launchSecurity'],
  ],
  devices: [
    ...['emulator', 'disk', 'controller', 'lease', 'filesystem', 'interface', 'smartcard', 'serial', 'parallel'],
    ...['console', 'channel', 'input', 'tpm', 'graphics', 'sound', 'audio', 'video', 'hostdev', 'redirdev'],
    ...['redirfilter', 'hub', 'watchdog', 'memballoon', 'rng', 'nvram', 'panic', 'shmem', 'memory', 'iommu'],
    ...['vsock', 'crypto', 'pstore'],
  ],
  features: [
    ...['pae', 'acpi', 'apic', 'hap', 'viridian', 'privnet', 'hyperv', 'kvm', 'xen', 'pvspinlock', 'pmu', 'vmport'],
    ...['gic', 'smm', 'ioapic', 'hpt', 'htm', 'nested-hv', 'capabilities', 'vmcoreinfo', 'msrs', 'ccf-assist'],
    ...['cfpc', 'sbbc', 'ibs', 'tcg', 'async-teardown', 'ras', 'ps2', 'aia'],
  ],
  cpu: ['model', 'vendor', 'topology', 'cache', 'maxphysaddr', 'feature', 'numa'],
  cputune: ['vcpupin', 'emulatorpin', 'iothreadpin'],
  source: ['slices'],
};

/** Brings the children of an element into libvirt's order; those that are not known come last, as they were. */
export function sortChildren(parent: XmlElement): void {
  const order = ORDER[parent.name];
  if (order === undefined) return;
  const rank = ({ name }: XmlElement): number => {
    const at = order.indexOf(name);
    return at < 0 ? order.length : at;
  };
  parent.children.sort((a, b) => rank(a) - rank(b));
}

/** Puts an element in the place of those of its name, or where libvirt would write it; undefined removes them. */
export function replaceChild(parent: XmlElement, name: string, child: XmlElement | undefined): void {
  parent.children = parent.children.filter((candidate) => candidate.name !== name);
  if (child === undefined) return;
  parent.children.push(child);
  sortChildren(parent);
}
