import { parseDuration } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';

/** What the command line of virt-launcher says, with the release's defaults filled in. */
export interface LauncherFlags {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly qemuTimeoutMs: number;
  readonly gracePeriodSeconds: number;
  readonly kubevirtShareDir: string;
  readonly ephemeralDiskDir: string;
  readonly containerDiskDir: string;
  readonly hotplugDiskDir: string;
  readonly privateDir: string;
  readonly libvirtRunDir: string;
  readonly libvirtEtcDir: string;
  readonly allowEmulation: boolean;
  readonly allowCrossArchEmulation: boolean;
  readonly runAsNonroot: boolean;
  readonly imageVolume: boolean;
  readonly libvirtHookServerAndClient: boolean;
  readonly upgradeOrdinalIfaces: boolean;
  readonly vgpuDedicatedHook: boolean;
  readonly vmStatsCollector: boolean;
  readonly firmwareAutoSelection: boolean;
  readonly hookSidecars: number;
  readonly diskMemoryLimitBytes: number;
  readonly ovmfPath: string;
  readonly agentSysIntervalMs: number;
  readonly agentFileIntervalMs: number;
  readonly agentUserIntervalMs: number;
  readonly agentVersionIntervalMs: number;
  readonly fsfreezeStatusIntervalMs: number;
  readonly simulateCrash: boolean;
  readonly libvirtLogFilters: string;
  readonly hypervisor: string;
  readonly verbosity: number;
  /** Flags that this release does not know: logged, never fatal, since the controller may be of another release. */
  readonly unknown: readonly string[];
}

type Kind = 'string' | 'bool' | 'int' | 'uint' | 'duration';
type Key = Exclude<keyof LauncherFlags, 'unknown'>;

/** Flag name to kind, field and default, in the order of `--help`. `@source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:353` */
const FLAGS: Readonly<Record<string, readonly [Kind, Key, string | number | boolean]>> = {
  'qemu-timeout': ['duration', 'qemuTimeoutMs', 180_000],
  name: ['string', 'name', ''],
  uid: ['string', 'uid', ''],
  namespace: ['string', 'namespace', ''],
  'kubevirt-share-dir': ['string', 'kubevirtShareDir', '/var/run/kubevirt'],
  'ephemeral-disk-dir': ['string', 'ephemeralDiskDir', '/var/run/kubevirt-ephemeral-disks'],
  'container-disk-dir': ['string', 'containerDiskDir', '/var/run/kubevirt/container-disks'],
  'hotplug-disk-dir': ['string', 'hotplugDiskDir', '/var/run/kubevirt/hotplug-disks/'],
  'grace-period-seconds': ['int', 'gracePeriodSeconds', 30],
  'allow-emulation': ['bool', 'allowEmulation', false],
  'allow-cross-arch-emulation': ['bool', 'allowCrossArchEmulation', false],
  'run-as-nonroot': ['bool', 'runAsNonroot', false],
  'image-volume': ['bool', 'imageVolume', false],
  'libvirt-hook-server-and-client': ['bool', 'libvirtHookServerAndClient', false],
  'upgrade-ordinal-ifaces': ['bool', 'upgradeOrdinalIfaces', false],
  'vgpu-dedicated-hook': ['bool', 'vgpuDedicatedHook', false],
  'vm-stats-collector': ['bool', 'vmStatsCollector', false],
  'firmware-auto-selection': ['bool', 'firmwareAutoSelection', false],
  'hook-sidecars': ['uint', 'hookSidecars', 0],
  'disk-memory-limit': ['int', 'diskMemoryLimitBytes', 2_097_152_000],
  'ovmf-path': ['string', 'ovmfPath', '/usr/share/edk2/ovmf'],
  'qemu-agent-sys-interval': ['duration', 'agentSysIntervalMs', 120_000],
  'qemu-agent-file-interval': ['duration', 'agentFileIntervalMs', 300_000],
  'qemu-agent-user-interval': ['duration', 'agentUserIntervalMs', 10_000],
  'qemu-agent-version-interval': ['duration', 'agentVersionIntervalMs', 300_000],
  'qemu-fsfreeze-status-interval': ['duration', 'fsfreezeStatusIntervalMs', 5_000],
  'simulate-crash': ['bool', 'simulateCrash', false],
  'libvirt-log-filters': ['string', 'libvirtLogFilters', ''],
  hypervisor: ['string', 'hypervisor', 'kvm'],
  v: ['int', 'verbosity', 2],
  'kubevirt-private-dir': ['string', 'privateDir', '/var/run/kubevirt-private'],
  'libvirt-run-dir': ['string', 'libvirtRunDir', '/var/run/libvirt'],
  'libvirt-etc-dir': ['string', 'libvirtEtcDir', '/etc/libvirt'],
};

const INTEGER = /^[+-]?\d+$/;
const UNSIGNED = /^\d+$/;

function parseDurationFlag(flag: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (caught) {
    throw LauncherError.from(caught, 'BadFlag', `invalid argument "${text}" for "--${flag}" flag: `);
  }
}

function parseValue(flag: string, kind: Kind, text: string): string | number | boolean {
  if (kind === 'string') return text;
  if (kind === 'duration') return parseDurationFlag(flag, text);
  if (kind === 'bool') {
    if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
    if (/^(0|f|F|false|FALSE|False)$/.test(text)) return false;
    throw new LauncherError('BadFlag', `invalid argument "${text}" for "--${flag}" flag: not a boolean`);
  }
  if (!(kind === 'uint' ? UNSIGNED : INTEGER).test(text)) {
    throw new LauncherError('BadFlag', `invalid argument "${text}" for "--${flag}" flag: not a number`);
  }
  return Number(text);
}

interface Token {
  readonly flag: string;
  readonly inline: string | undefined;
}

function tokenOf(arg: string): Token | undefined {
  const shorthand = /^-v(\d+)$/.exec(arg);
  if (shorthand !== null) return { flag: 'v', inline: shorthand[1] };
  const match = /^--?([^=-][^=]*)(?:=(.*))?$/s.exec(arg);
  return match === null ? undefined : { flag: match[1] ?? '', inline: match[2] };
}

/**
 * Reads virt-launcher's command line (without the program name).
 *
 * @throws {LauncherError} `BadFlag` for a known flag with a value that cannot be read or is missing
 */
export function parseFlags(argv: readonly string[]): LauncherFlags {
  const values: Record<string, string | number | boolean> = {};
  for (const [, field, byDefault] of Object.values(FLAGS)) values[field] = byDefault;
  const unknown: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] ?? '';
    const token = tokenOf(arg);
    const known = token === undefined ? undefined : FLAGS[token.flag];
    if (token === undefined || known === undefined) {
      unknown.push(arg);
      continue;
    }
    const [kind, field] = known;
    const text = token.inline ?? (kind === 'bool' ? 'true' : argv[++i]);
    if (text === undefined) throw new LauncherError('BadFlag', `flag needs an argument: --${token.flag}`);
    values[field] = parseValue(token.flag, kind, text);
  }
  return { ...(values as unknown as Omit<LauncherFlags, 'unknown'>), unknown };
}

/** The flags with their kinds and defaults, one line each, for `--help`. */
export function renderFlagHelp(): string {
  const lines = Object.entries(FLAGS).map(([flag, [kind, , byDefault]]) => {
    const shown = kind === 'duration' ? `${Number(byDefault) / 1_000}s` : String(byDefault);
    return `  --${flag}${kind === 'bool' ? '' : ` <${kind}>`}${shown === '' ? '' : ` (default ${shown})`}`;
  });
  return `Usage: virt-launcher [flags]\n\n${lines.join('\n')}\n`;
}
