import { basename } from 'node:path/posix';

import type { Domain, DomainACPITable, Vmi, VmiFirmware } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { confidentialityOf, isNonRoot } from './vmi-traits.ts';

const BOOT_MENU_TIMEOUT_MS = 10_000;
const ROOT_NVRAM_DIR = '/var/lib/libvirt/qemu/nvram';

/**
 * Firmware, kernel, ACPI tables, machine type and boot menu.
 *
 * @throws {LauncherError} `ConvertFailed` for ACPI tables without a fitting volume.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/os.go
 */
export function configureOs(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { OS } = domain.Spec;
  const { firmware, machine } = vmi.spec.domain;
  if (firmware !== undefined) {
    configureEfi(vmi, context, domain);
    if (firmware.bootloader?.bios?.useSerial === true) OS.BIOS = { UseSerial: 'yes' };
    configureKernelBoot(firmware, context, domain);
    configureAcpiTables(vmi, firmware, context, domain);
  }
  if (context.arch.hasSmbios) OS.SMBios = { Mode: 'sysinfo' };
  if (machine?.type !== undefined) OS.Type.Machine = machine.type;
  if (vmi.spec.startStrategy === 'Paused') OS.BootMenu = { Enable: 'yes', Timeout: BOOT_MENU_TIMEOUT_MS };
}

function configureEfi(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { efi } = context;
  if (efi === undefined) return;
  const { OS } = domain.Spec;
  const nvram = `${nvramDir(vmi, context)}/${vmi.metadata.name}_VARS.fd`;
  if (efi.isAutoSelected) {
    OS.Firmware = 'efi';
    OS.FirmwareInfo = {
      Features: [
        { Enabled: 'yes', Name: 'secure-boot' },
        { Enabled: 'yes', Name: 'enrolled-keys' },
      ],
    };
    // Secure Boot firmware of arm64 keeps its variables in memory, which an <nvram> would contradict.
    if (vmi.spec.architecture !== 'arm64') OS.NVRam = { Format: 'raw', NVRam: nvram };
    return;
  }
  const kind = confidentialityOf(vmi);
  const isStateless = kind === 'snp' || kind === 'tdx';
  OS.BootLoader = {
    ReadOnly: 'yes',
    Secure: efi.hasSecureLoader ? 'yes' : 'no',
    Type: isStateless ? 'rom' : 'pflash',
    Path: efi.code,
  };
  if (!isStateless) OS.NVRam = { Template: efi.vars, NVRam: nvram };
}

function nvramDir(vmi: Vmi, context: ConverterContext): string {
  if (!isNonRoot(vmi)) return ROOT_NVRAM_DIR;
  return `${context.circumstances.paths.privateDir}/libvirt/qemu/nvram`;
}

function configureKernelBoot(firmware: VmiFirmware, context: ConverterContext, domain: Domain): void {
  const { kernelBoot } = firmware;
  if (kernelBoot === undefined) return;
  const { OS } = domain.Spec;
  const artefact = (path: string): string =>
    `${context.circumstances.paths.containerDiskDir}/kernel-boot/${basename(path)}`;
  if (kernelBoot.container?.kernelPath) OS.Kernel = artefact(kernelBoot.container.kernelPath);
  if (kernelBoot.container?.initrdPath) OS.Initrd = artefact(kernelBoot.container.initrdPath);
  OS.KernelArgs = kernelBoot.kernelArgs;
}

function configureAcpiTables(vmi: Vmi, firmware: VmiFirmware, context: ConverterContext, domain: Domain): void {
  if (firmware.acpi === undefined) return;
  const { slicNameRef = '', msdmNameRef = '' } = firmware.acpi;
  if (slicNameRef === '' && msdmNameRef === '') {
    throw new LauncherError('ConvertFailed', 'No ACPI tables were set. Expecting at least one.');
  }
  domain.Spec.OS.ACPI = {
    Table: [...acpiTable(vmi, 'slic', slicNameRef, context), ...acpiTable(vmi, 'msdm', msdmNameRef, context)],
  };
}

function acpiTable(
  vmi: Vmi,
  type: 'slic' | 'msdm',
  volumeName: string,
  context: ConverterContext,
): readonly DomainACPITable[] {
  if (volumeName === '') return [];
  const volume = vmi.spec.volumes?.find(({ name }) => name === volumeName);
  if (volume === undefined) throw new LauncherError('ConvertFailed', `Firmware's volume for ${type} was not found`);
  if (volume.secret === undefined) {
    throw new LauncherError('ConvertFailed', `Firmware's volume type is unsupported for ${type}`);
  }
  return [{ Type: type, Path: `${context.circumstances.paths.privateDir}/secret/${volumeName}/${type}.bin` }];
}
