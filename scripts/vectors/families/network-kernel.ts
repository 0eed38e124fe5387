import type { NetworkOp, PodKernel, PodNetwork } from '@virtwire/handler/testing';

/** A call that fails, as the vectors describe it. */
export interface Fault {
  readonly call: string;
  readonly arg?: string;
  readonly skip?: number;
  readonly message: string;
}

/** Counts calls and fails those that a case wants to fail. */
export class Faults {
  readonly #faults: readonly Fault[];
  readonly #seen = new Map<Fault, number>();

  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  check(call: string, args: readonly string[]): void {
    for (const fault of this.#faults) {
      if (fault.call !== call || (fault.arg !== undefined && !args.includes(fault.arg))) continue;
      const seen = this.#seen.get(fault) ?? 0;
      this.#seen.set(fault, seen + 1);
      if (seen >= (fault.skip ?? 0)) throw new Error(fault.message);
    }
  }
}

/** A link of the kernel that the vectors were recorded on: a table, not a device. */
export interface FakeLink {
  name: string;
  readonly index: number;
  readonly type: string;
  isUp: boolean;
  mac: string;
  mtu: number;
  controller: string | undefined;
  learning: boolean;
  addresses: string[];
}

/** The fake kernel of the network-phase1 vectors (see their README), with the same calls in the same words. */
export class FakeKernel {
  readonly calls: string[][] = [];
  readonly sysctls = new Map<string, string>();
  readonly nft: string[][] = [];
  #links: FakeLink[];
  #made = 0;
  readonly #faults: Faults;

  constructor(network: PodNetwork, faults: Faults) {
    this.#faults = faults;
    this.#links = network.interfaces.map((link) => ({
      name: link.name,
      index: link.index ?? 0,
      type: link.type ?? '',
      isUp: link.state === 'up' || link.state === 'lower-layer-down',
      mac: link['mac-address'] ?? '',
      mtu: link.mtu ?? 0,
      controller: link.controller,
      learning: link['linux-stack']['port-learning'] ?? false,
      addresses: [...(link.IPv4.address ?? []), ...(link.IPv6.address ?? [])].map(
        (a) => `${a.IP}/${String(a['prefix-length'])}`,
      ),
    }));
  }

  /** One call in the vectors' words, e.g. `['linkRename', 'eth0', 'eth0-nic']`. */
  call(words: readonly string[]): void {
    const [name = '', ...args] = words;
    this.#faults.check(name, args);
    this.calls.push([...words]);
    const [first = '', second = ''] = args;
    const link = this.#links.find((l) => l.name === first);
    switch (name) {
      case 'linkAdd':
        return this.#add(first, second, 1500);
      case 'virt-chroot':
        return this.#add(args[2] ?? '', 'tap', Number(args.at(-1)));
      case 'linkDelete':
        this.#links = this.#links.filter((l) => l !== link);
        return;
      case 'sysctl':
        this.sysctls.set(first, second);
        return;
      case 'nft':
        this.nft.push(args);
        return;
      default:
        if (link !== undefined) change(link, name, second);
    }
  }

  /** The links in a form that can be compared; addresses that a kernel makes by itself are left out. */
  links(): unknown {
    return Object.fromEntries(
      this.#links.map(({ name, type, isUp, mac, mtu, controller, learning, addresses }) => {
        const kept = addresses.filter((a) => !a.startsWith('fe80:') || !isUp).sort();
        return [name, { type, isUp, mac, mtu, controller, learning, addresses: kept }];
      }),
    );
  }

  /** The links as they are. */
  table(): readonly Readonly<FakeLink>[] {
    return this.#links;
  }

  macOf(name: string): string {
    return this.#links.find((l) => l.name === name)?.mac ?? '';
  }

  #add(name: string, type: string, mtu: number): void {
    this.#made += 1;
    const index = Math.max(...this.#links.map((l) => l.index)) + 1;
    const mac = `0e:00:00:00:00:${this.#made.toString(16).padStart(2, '0')}`;
    this.#links.push({
      name,
      index,
      type,
      isUp: false,
      mac,
      mtu,
      controller: undefined,
      learning: false,
      addresses: [],
    });
  }
}

function change(link: FakeLink, call: string, value: string): void {
  if (call === 'linkRename') link.name = value;
  else if (call === 'linkUp') link.isUp = true;
  else if (call === 'linkSetMAC') link.mac = value;
  else if (call === 'linkSetMTU') link.mtu = Number(value);
  else if (call === 'linkSetMaster') link.controller = value;
  else if (call === 'linkLearningOff') link.learning = false;
  else if (call === 'addrAdd') link.addresses.push(value);
  else if (call === 'addrDelete') link.addresses = link.addresses.filter((a) => a !== value);
  else if (call === 'linkDown') {
    link.isUp = false;
    link.addresses = link.addresses.filter((a) => !a.includes(':'));
  }
}

/** The product's view of the fake kernel. */
export function asPodKernel(kernel: FakeKernel, network: PodNetwork, faults: Faults): PodKernel {
  return {
    identity: 'this pod',
    read() {
      faults.check('LinkList', []);
      return network;
    },
    async apply(op) {
      kernel.call(wordsOf(op, kernel));
    },
    async runNft(script) {
      for (const line of script.trimEnd().split('\n')) {
        try {
          kernel.call(['nft', ...splitNft(line)]);
        } catch (caught) {
          throw new Error(`${caught instanceof Error ? caught.message : ''}, error: exit status 1`, { cause: caught });
        }
      }
    },
    hasRules: async () => false,
    [Symbol.dispose]: () => undefined,
  };
}

function wordsOf(op: NetworkOp, kernel: FakeKernel): string[] {
  switch (op.kind) {
    case 'linkAdd':
      return [op.kind, op.name, op.type];
    case 'createTap': {
      const { uid, gid, queues, mtu } = op.tap;
      const numbers = ['--uid', uid, '--gid', gid, '--queue-number', queues, '--mtu', mtu ?? 0].map(String);
      return ['virt-chroot', 'create-tap', '--tap-name', op.name, ...numbers];
    }
    case 'linkRename':
      return [op.kind, op.name, op.to];
    case 'linkSetMac':
      return ['linkSetMAC', op.name, op.mac];
    case 'linkCopyMac':
      return ['linkSetMAC', op.name, kernel.macOf(op.from)];
    case 'linkSetMtu':
      return ['linkSetMTU', op.name, String(op.mtu)];
    case 'linkSetMaster':
      return [op.kind, op.name, op.bridge];
    case 'addrAdd':
    case 'addrDelete':
      return [op.kind, op.name, op.cidr];
    case 'sysctl':
      return [op.kind, op.path, op.value];
    default:
      return [op.kind, op.name];
  }
}

/** The words of a line; what stands in braces is one word. */
function splitNft(line: string): string[] {
  return line.match(/\{[^}]*\}|\S+/g) ?? [];
}
