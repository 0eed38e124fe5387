import { LauncherError } from '../errors.ts';
import type { Circumstances } from './circumstances.ts';
import type { ArchitectureTraits } from './architecture.ts';

/** Confidential guest kinds that choose a firmware of their own. */
export type Confidentiality = 'none' | 'sev' | 'snp' | 'tdx';

/** The firmware that a guest boots with. */
export interface EfiFirmware {
  /** Full path of the code image; empty with auto-selection. */
  readonly code: string;
  /** Full path of the variable template; empty for stateless firmware. */
  readonly vars: string;
  readonly hasSecureLoader: boolean;
  /** libvirt picks the firmware by its features. */
  readonly isAutoSelected: boolean;
}

interface FirmwarePair {
  readonly code: readonly string[];
  readonly vars: string | undefined;
}

/**
 * Picks the EFI firmware for a guest out of the files that exist.
 *
 * @throws {LauncherError} `ConvertFailed` when the wanted kind is not there.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/efi/efi.go
 */
export function selectEfiFirmware(
  arch: ArchitectureTraits,
  isSecureBoot: boolean,
  kind: Confidentiality,
  circumstances: Pick<Circumstances, 'firmwareAutoSelection' | 'firmwareDir' | 'firmwareFiles'>,
): EfiFirmware {
  if (circumstances.firmwareAutoSelection && isSecureBoot && kind === 'none') {
    return { code: '', vars: '', hasSecureLoader: true, isAutoSelected: true };
  }
  const pair = firmwarePair(arch, isSecureBoot, kind);
  const code = pair?.code.find((name) => circumstances.firmwareFiles.has(name));
  const hasVars = pair?.vars === undefined || circumstances.firmwareFiles.has(pair.vars);
  if (pair === undefined || code === undefined || !hasVars) {
    throw new LauncherError(
      'ConvertFailed',
      `EFI OVMF roms missing for booting in EFI mode with SecureBoot=${String(isSecureBoot)}, ` +
        `SEV/SEV-ES=${String(kind === 'sev')}, SEV-SNP=${String(kind === 'snp')}, TDX=${String(kind === 'tdx')}`,
    );
  }
  const path = (name: string): string => joinPath(circumstances.firmwareDir, name);
  return {
    code: path(code),
    vars: pair.vars === undefined ? '' : path(pair.vars),
    hasSecureLoader: isSecureBoot && kind === 'none',
    isAutoSelected: false,
  };
}

/** Every firmware file name that a launcher of this architecture looks for. */
export function firmwareFileNames(arch: ArchitectureTraits): readonly string[] {
  if (arch.name === 'arm64') return ['AAVMF_CODE.fd', 'AAVMF_VARS.fd'];
  return [
    'OVMF_CODE.fd',
    'OVMF_VARS.fd',
    'OVMF_CODE.secboot.fd',
    'OVMF_VARS.secboot.fd',
    'OVMF_CODE.cc.fd',
    'OVMF.amdsev.fd',
    'OVMF.inteltdx.fd',
    'OVMF.inteltdx.secboot.fd',
  ];
}

function firmwarePair(
  arch: ArchitectureTraits,
  isSecureBoot: boolean,
  kind: Confidentiality,
): FirmwarePair | undefined {
  if (arch.name === 'arm64') {
    if (isSecureBoot || kind !== 'none') return undefined;
    return { code: ['AAVMF_CODE.fd'], vars: 'AAVMF_VARS.fd' };
  }
  switch (kind) {
    case 'sev':
      return isSecureBoot ? undefined : { code: ['OVMF_CODE.cc.fd'], vars: 'OVMF_VARS.fd' };
    case 'snp':
      return isSecureBoot ? undefined : { code: ['OVMF.amdsev.fd'], vars: undefined };
    case 'tdx':
      return { code: [isSecureBoot ? 'OVMF.inteltdx.secboot.fd' : 'OVMF.inteltdx.fd'], vars: undefined };
    case 'none':
      if (isSecureBoot) return { code: ['OVMF_CODE.secboot.fd'], vars: 'OVMF_VARS.secboot.fd' };
      // The Secure Boot build with plain variables boots with Secure Boot off.
      return { code: ['OVMF_CODE.secboot.fd', 'OVMF_CODE.fd'], vars: 'OVMF_VARS.fd' };
  }
}

function joinPath(dir: string, name: string): string {
  if (dir === '') return name;
  return dir.endsWith('/') ? dir + name : `${dir}/${name}`;
}
