import fc from 'fast-check';

import type {
  Network,
  VmiDomain,
  VmiGpu,
  VmiHostDevice,
  VmiInput,
  VmiInterface,
  VmiInterfaceStatus,
} from '@virtwire/vm-model';

import type { ClaimedDevice } from '../converter/circumstances.ts';

const bool = fc.boolean();

/** Devices that are there or not, and switches. */
export const simpleDevices = fc.record(
  {
    rng: fc.constant({}),
    watchdog: fc.constantFrom({ action: 'poweroff' }, { action: 'shutdown' }, {}),
    sound: fc.constantFrom({ name: 's' }, { name: 's', model: 'ac97' }),
    inputs: fc.constantFrom<VmiInput[]>(
      [{ name: 't', type: 'tablet' }],
      [{ name: 't', type: 'tablet', bus: 'virtio' }],
      [
        { name: 't', type: 'tablet', bus: 'usb' },
        { name: 'u', type: 'tablet', bus: 'virtio' },
      ],
    ),
    panicDevices: fc.constantFrom<{ model: string }[]>([{ model: 'isa' }], [{ model: 'hyperv' }]),
    clientPassthrough: fc.constant({}),
    downwardMetrics: fc.constant({}),
    video: fc.constantFrom({ type: 'virtio' }, { type: 'vga' }),
    blockMultiQueue: bool,
    networkInterfaceMultiqueue: bool,
    useVirtioTransitional: bool,
    disableHotplug: bool,
    logSerialConsole: bool,
    autoattachGraphicsDevice: bool,
    autoattachSerialConsole: bool,
    autoattachMemBalloon: bool,
    autoattachPodInterface: bool,
    autoattachInputDevice: bool,
    autoattachVSOCK: bool,
  },
  { requiredKeys: [] },
);

/** Few machines with a TPM, which takes a helper that not every node has. */
export const tpm = fc.constantFrom<VmiDomain['devices']['tpm']>(
  ...Array.from({ length: 9 }, () => undefined),
  {},
  { enabled: true, persistent: true },
  { enabled: false },
);

/** How a card reaches its network. */
type Binding = Pick<VmiInterface, 'masquerade' | 'bridge' | 'sriov' | 'passtBinding' | 'binding'>;

const podBinding = fc.constantFrom<Binding>(
  { masquerade: {} },
  { masquerade: {} },
  { masquerade: {} },
  { bridge: {} },
  { bridge: {} },
  { passtBinding: {} },
  { binding: { name: 'tap-plugin' } },
);
const multusBinding = fc.constantFrom<Binding>(
  { bridge: {} },
  { bridge: {} },
  { sriov: {} },
  { binding: { name: 'tap-plugin' } },
  { binding: { name: 'sidecar-plugin' } },
);

const card = fc.record(
  {
    podBinding,
    multusBinding,
    model: fc.constantFrom('virtio', 'e1000e', 'rtl8139'),
    macAddress: fc.constantFrom('02:00:00:00:00:07'),
    acpiIndex: fc.integer({ min: 1, max: 16 }),
    state: fc.constantFrom<'up' | 'down' | 'absent'>('up', 'down', 'absent'),
    tag: fc.constant('fast'),
    dhcpOptions: fc.constant<NonNullable<VmiInterface['dhcpOptions']>>({
      bootFileName: 'b',
      tftpServerName: 't',
      ntpServers: ['10.0.0.1'],
      privateOptions: [{ option: 240, value: 'v' }],
    }),
    ports: fc.constantFrom<NonNullable<VmiInterface['ports']>>(
      [{ port: 80 }],
      [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'web', port: 443, protocol: 'TCP' },
      ],
    ),
    portRanges: fc.constant<NonNullable<VmiInterface['portRanges']>>([
      { name: 'many', protocol: 'TCP', start: 8000, end: 8010 },
    ]),
    boots: bool,
    hasAddress: bool,
  },
  { requiredKeys: ['podBinding', 'multusBinding'] },
);

/** Network cards as drawn; `layOutCards` makes VMI parts of them. */
export const cards = fc.record({
  cards: fc.array(card, { maxLength: 3 }),
  podNetwork: fc.constantFrom<Omit<Network, 'name'>>(
    { pod: {} },
    { pod: { vmNetworkCIDR: '10.11.0.0/24', vmIPv6NetworkCIDR: 'fd11::/120' } },
    { multus: { networkName: 'ns/first', default: true } },
  ),
  isClaimed: bool,
});

type Cards = typeof cards extends fc.Arbitrary<infer T> ? T : never;

/** What drawn network cards come to. */
export interface CardParts {
  readonly interfaces: VmiInterface[];
  readonly networks: Network[];
  readonly statuses: VmiInterfaceStatus[];
  readonly attachments: Record<string, string>;
  readonly networkInfo: { network: string; deviceInfo: { pci: { 'pci-address': string } } }[];
  readonly claims: Map<string, ClaimedDevice>;
}

/** Boot orders of disks come first. */
const FIRST_BOOT_ORDER = 20;

/**
 * Cards, networks and what the pod's status says of them.
 *
 * @param mayPlace which cards may name their place on the root bus, where nothing else has been put.
 */
export function layOutCards(
  given: Cards,
  mayPlace: { readonly taps: boolean; readonly functions: boolean },
): CardParts {
  const parts: CardParts = {
    interfaces: [],
    networks: [],
    statuses: [],
    attachments: {},
    networkInfo: [],
    claims: new Map(),
  };
  for (const [
    index,
    { podBinding: first, multusBinding: other, boots, hasAddress, ...rest },
  ] of given.cards.entries()) {
    const name = `n${String(index)}`;
    const binding = index === 0 ? first : other;
    const isTap = binding.sriov === undefined && binding.passtBinding === undefined;
    if (isTap && binding.binding?.name !== 'sidecar-plugin') parts.attachments[name] = 'tap';
    const isFree = binding.sriov === undefined ? mayPlace.taps : mayPlace.functions;
    const place = isFree && hasAddress === true ? { pciAddress: `0000:00:${(0x18 + index).toString(16)}.0` } : {};
    const order = boots === true ? { bootOrder: FIRST_BOOT_ORDER + index } : {};
    parts.interfaces.push({ ...rest, ...binding, ...place, ...order, name });
    const isClaimed = given.isClaimed && binding.sriov !== undefined;
    const secondary = isClaimed
      ? { resourceClaim: { claimName: 'nics', requestName: name } }
      : { multus: { networkName: name } };
    parts.networks.push({ name, ...(index === 0 ? given.podNetwork : secondary) });
    parts.statuses.push({ name, podInterfaceName: index === 0 ? 'eth0' : `net${String(index)}` });
    if (binding.sriov !== undefined) addVirtualFunction(parts, name, index, isClaimed);
  }
  return parts;
}

function addVirtualFunction(parts: CardParts, name: string, index: number, isClaimed: boolean): void {
  const address = `0000:81:02.${String(index)}`;
  if (isClaimed) {
    parts.claims.set(`nics/${name}`, { pciBusId: address, mdevUuid: undefined });
    return;
  }
  parts.networkInfo.push({ network: name, deviceInfo: { pci: { 'pci-address': address } } });
  const status = parts.statuses.find((candidate) => candidate.name === name);
  if (status !== undefined) status.infoSource = 'domain, multus-status';
}

type DeviceKind = 'pci' | 'mdev' | 'usb' | 'claimed-pci' | 'claimed-mdev';

/** Devices of the node as drawn; `layOutHostDevices` makes VMI parts of them. */
export const hostDevices = fc.record({
  generic: fc.array(fc.constantFrom<DeviceKind>('pci', 'mdev', 'usb', 'claimed-pci', 'claimed-mdev'), { maxLength: 3 }),
  gpus: fc.array(fc.constantFrom<DeviceKind>('pci', 'mdev', 'claimed-pci', 'claimed-mdev'), { maxLength: 2 }),
  display: fc.constantFrom<NonNullable<VmiGpu['virtualGPUOptions']> | undefined>(
    undefined,
    {},
    { display: {} },
    { display: { enabled: true, ramFB: { enabled: false } } },
    { display: { enabled: false } },
  ),
  isWanted: fc.integer({ min: 1, max: 3 }).map((number) => number === 1),
});

type HostDevices = typeof hostDevices extends fc.Arbitrary<infer T> ? T : never;

/** What drawn host devices come to. */
export interface HostDeviceParts {
  readonly devices: Pick<VmiDomain['devices'], 'gpus' | 'hostDevices'>;
  /** The launcher's environment. */
  readonly environment: Record<string, string>;
  readonly claims: Map<string, ClaimedDevice>;
  /** A virtual GPU may show its picture, which takes a screen. */
  readonly needsScreen: boolean;
}

const VARIABLES: Readonly<Record<string, string>> = {
  pci: 'PCI_RESOURCE',
  mdev: 'MDEV_PCI_RESOURCE',
  usb: 'USB_RESOURCE',
};

/** Host devices and GPUs with the addresses that device plugins or resource claims gave. */
export function layOutHostDevices({ generic, gpus, display, isWanted }: HostDevices): HostDeviceParts {
  const environment: Record<string, string> = {};
  const claims = new Map<string, ClaimedDevice>();
  const allot = (kind: DeviceKind, name: string, number: number): Omit<VmiHostDevice, 'name'> => {
    const bus = kind.endsWith('pci') ? 'pci' : kind.endsWith('mdev') ? 'mdev' : 'usb';
    const address = addressOf(bus, number);
    if (kind.startsWith('claimed')) {
      claims.set(`devices/${name}`, {
        pciBusId: bus === 'pci' ? address : undefined,
        mdevUuid: bus === 'mdev' ? address : undefined,
      });
      return { claimName: 'devices', requestName: name };
    }
    environment[`${VARIABLES[bus] ?? ''}_EXAMPLE_COM_${name.toUpperCase()}`] = address;
    return { deviceName: `example.com/${name}` };
  };
  if (!isWanted) return { devices: {}, environment, claims, needsScreen: false };
  const plain = generic.map((kind, index): VmiHostDevice => {
    const name = `h${String(index)}`;
    return { name, tag: 'fast', ...allot(kind, name, index + 1) };
  });
  const screens = gpus.map((drawn, index): VmiGpu => {
    const name = `g${String(index)}`;
    // Only one device shows what the firmware draws, and plugins and claims have a first one each.
    const kind = gpus.includes('mdev') && drawn === 'claimed-mdev' ? 'claimed-pci' : drawn;
    const options = index === 0 && display !== undefined ? { virtualGPUOptions: structuredClone(display) } : {};
    return { name, ...allot(kind, name, generic.length + index + 1), ...options };
  });
  return {
    devices: {
      ...(plain.length > 0 ? { hostDevices: plain } : {}),
      ...(screens.length > 0 ? { gpus: screens } : {}),
    },
    environment,
    claims,
    needsScreen: screens.length > 0,
  };
}

function addressOf(bus: string, number: number): string {
  if (bus === 'pci') return `0000:82:0${String(number)}.0`;
  return bus === 'usb' ? `1:${String(number)}` : `00000000-0000-4000-8000-00000000000${String(number)}`;
}
