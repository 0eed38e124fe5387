import type { DomainController, DomainInterface, DomainSpec } from '@virtwire/vm-model';

/** Highest index of a PCI controller that QEMU takes. */
const MAX_CONTROLLER_INDEX = 31;

/** The domain with placeholder interfaces behind its own. */
export function withPlaceholders(spec: DomainSpec, count: number, virtioModel: string): DomainSpec {
  const placeholders = Array.from({ length: count }, (_, i): DomainInterface => {
    const name = `placeholder-${i}`;
    return {
      XMLName: { Space: '', Local: '' },
      Type: 'ethernet',
      Source: {},
      Model: { Type: virtioModel },
      Target: { Device: name, Managed: 'no' },
      Alias: { Name: name, UserDefined: false },
    };
  });
  if (count === 0) return spec;
  return { ...spec, Devices: { ...spec.Devices, Interfaces: [...(spec.Devices.Interfaces ?? []), ...placeholders] } };
}

/** The domain with the devices that libvirt completed, but only its own interfaces. */
export function withCompletedDevices(spec: DomainSpec, completed: DomainSpec): DomainSpec {
  return { ...spec, Devices: { ...completed.Devices, Interfaces: spec.Devices.Interfaces } };
}

/** The domain with root ports behind its PCI controllers; fewer than asked for when the indices run out. */
export function withRootPorts(spec: DomainSpec, count: number): DomainSpec {
  const before = spec.Devices.Controllers ?? [];
  const indices = before.filter((c) => c.Type === 'pci').map((c) => Number(c.Index ?? 0));
  const first = Math.max(0, ...indices.filter(Number.isFinite)) + 1;
  const last = Math.min(first + count - 1, MAX_CONTROLLER_INDEX);
  const ports: DomainController[] = [];
  for (let index = first; index <= last; index++) {
    ports.push({ Type: 'pci', Index: String(index), Model: 'pcie-root-port' });
  }
  return { ...spec, Devices: { ...spec.Devices, Controllers: [...before, ...ports] } };
}

/** Target device name (`vda`, `tap0`) to alias, for statistics. */
export function aliasesOf({ Devices }: DomainSpec): ReadonlyMap<string, string> {
  const named = [...(Devices.Interfaces ?? []), ...(Devices.Disks ?? [])];
  return new Map(
    named.flatMap(({ Target, Alias }) =>
      Target?.Device === undefined || Alias?.Name === undefined ? [] : [[Target.Device, Alias.Name] as const],
    ),
  );
}
