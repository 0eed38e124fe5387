import type { Domain, Vmi, VmiWatchdog } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { annotationOf, isOn } from './vmi-traits.ts';
import { nonEmpty } from './non-empty.ts';

const SOUND_MODELS = new Set(['ich9', 'ac97']);
const USB_REDIRECTIONS = 4;
const USB_SOCKET_PREFIX = 'virt-usbredir-';

/** Emulated TPM; a persistent one keeps its state over restarts. */
export function configureTpm(vmi: Vmi, domain: Domain): void {
  const { tpm } = vmi.spec.domain.devices;
  if (!isOn(tpm)) return;
  const isPersistent = tpm?.persistent === true;
  domain.Spec.Devices.TPMs = [
    {
      Model: isPersistent ? 'tpm-crb' : 'tpm-tis',
      Backend: { Type: 'emulator', Version: '2.0', ...(isPersistent ? { PersistentState: 'yes' } : {}) },
    },
  ];
}

/** Socket to the host under the context id that virt-controller gave. */
export function configureVsock(vmi: Vmi, domain: Domain): void {
  const cid = vmi.status?.VSOCKCID;
  if (cid === undefined) return;
  domain.Spec.Devices.VSOCK = { Model: 'virtio-non-transitional', CID: { Auto: 'no', Address: cid } };
}

/** Guest agent channel, and the one for downward metrics. */
export function configureChannels(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const channels = [{ Type: 'unix', Target: { Name: 'org.qemu.guest_agent.0', Type: 'virtio' } }];
  domain.Spec.Devices.Channels = channels;
  if (vmi.spec.domain.devices.downwardMetrics === undefined) return;
  const path = `${context.circumstances.paths.privateDir}/downwardmetrics-channel/downwardmetrics.sock`;
  domain.Spec.Devices.Channels.push({
    Type: 'unix',
    Source: { Mode: 'bind', Path: path },
    Target: { Name: 'org.github.vhostmd.1', Type: 'virtio' },
  });
}

/** Random numbers out of the host's pool. */
export function configureRng(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  if (vmi.spec.domain.devices.rng === undefined) return;
  domain.Spec.Devices.Rng = {
    Model: context.virtioModel,
    Backend: { Model: 'random', Source: '/dev/urandom' },
    ...(context.usesIommu ? { Driver: { IOMMU: 'on' } } : {}),
  };
}

/** Memory balloon with its statistics. */
export function configureBalloon(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  if (vmi.spec.domain.devices.autoattachMemBalloon === false) {
    domain.Spec.Devices.Ballooning = { Model: 'none' };
    return;
  }
  const period = context.balloonPeriodSeconds;
  domain.Spec.Devices.Ballooning = {
    Model: context.virtioModel,
    FreePageReporting: context.hasFreePageReporting ? 'on' : 'off',
    ...(period === 0 ? {} : { Stats: { Period: period } }),
    ...(context.usesIommu ? { Driver: { IOMMU: 'on' } } : {}),
  };
}

/** Sound card. */
export function configureSound(vmi: Vmi, domain: Domain): void {
  const { sound } = vmi.spec.domain.devices;
  if (sound === undefined) return;
  const model = nonEmpty(sound.model) ?? 'ich9';
  if (!SOUND_MODELS.has(model)) throw new LauncherError('ConvertFailed', `invalid model: ${model}`);
  domain.Spec.Devices.SoundCards = [{ Alias: { Name: sound.name, UserDefined: true }, Model: model }];
}

/** Watchdog of the architecture. */
export function configureWatchdog(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { watchdog } = vmi.spec.domain.devices;
  if (watchdog === undefined) return;
  const { model, action } = watchdogKind(watchdog, context);
  const Alias = { Name: watchdog.name, UserDefined: true };
  domain.Spec.Devices.Watchdogs = [{ Model: model, Action: action, Alias }];
}

function watchdogKind(watchdog: VmiWatchdog, context: ConverterContext): { model: string; action: string } {
  const { i6300esb, diag288 } = watchdog;
  if (context.arch.name === 'arm64') {
    throw new LauncherError('ConvertFailed', 'watchdog is not supported on architecture ARM64');
  }
  if (context.arch.name === 's390x' && diag288 !== undefined) {
    return { model: 'diag288', action: diag288.action ?? '' };
  }
  if (context.arch.name === 'amd64' && i6300esb !== undefined) {
    return { model: 'i6300esb', action: i6300esb.action ?? '' };
  }
  throw new LauncherError('ConvertFailed', `watchdog ${watchdog.name} can't be mapped, no watchdog type specified`);
}

/** Devices through which the guest tells of its panic. */
export function configurePanicDevices(vmi: Vmi, domain: Domain): void {
  const panics = vmi.spec.domain.devices.panicDevices ?? [];
  if (panics.length > 0) domain.Spec.Devices.PanicDevices = panics.map(({ model }) => ({ Model: model }));
}

/** Sockets over which a client lends its USB devices. */
export function configureUsbRedirection(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  if (vmi.spec.domain.devices.clientPassthrough === undefined) return;
  const dir = `${context.circumstances.paths.privateDir}/${vmi.metadata.uid}`;
  domain.Spec.Devices.Redirs = Array.from({ length: USB_REDIRECTIONS }, (_none, slot) => ({
    Type: 'unix',
    Bus: 'usb',
    Source: { Mode: 'bind', Path: `${dir}/${USB_SOCKET_PREFIX}${String(slot)}` },
  }));
}

/** Directories shared by virtiofs. */
export function configureFilesystems(vmi: Vmi, domain: Domain): void {
  const filesystems = (vmi.spec.domain.devices.filesystems ?? []).filter(({ virtiofs }) => virtiofs !== undefined);
  if (filesystems.length === 0) return;
  domain.Spec.Devices.Filesystems = filesystems.map(({ name }) => ({
    Type: 'mount',
    AccessMode: 'passthrough',
    Source: { Socket: `/var/run/kubevirt/virtiofs-containers/${name}.sock` },
    Target: { Dir: name },
    Driver: { Type: 'virtiofs', Queue: '1024' },
  }));
}

/** Memory encryption of the guest. */
export function configureLaunchSecurity(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const security = vmi.spec.domain.launchSecurity;
  if (security === undefined || context.arch.name !== 'amd64') return;
  const { sev, snp, tdx } = security;
  if (sev !== undefined) {
    domain.Spec.LaunchSecurity = {
      Type: 'sev',
      DHCert: sev.dhCert,
      Session: sev.session,
      // Bit 0: no debugging; bit 2: register state is encrypted too.
      Policy: sev.policy?.encryptedState === true ? '0x5' : '0x1',
    };
  } else if (snp !== undefined) {
    domain.Spec.LaunchSecurity = { Type: 'sev-snp', Policy: '0x30000' };
  } else if (tdx !== undefined) {
    const path = annotationOf(vmi, 'kubevirt.io/qgs-socket-path') ?? '';
    domain.Spec.LaunchSecurity = { Type: 'tdx', QuoteGenerationService: { Path: path } };
  }
}
