import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { domainName, parseJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import type { LibvirtPort, Params } from './libvirt-port.ts';

/** What confidential guests ask of libvirt. */
export interface LaunchSecurityDeps {
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'getSevInfo' | 'getLaunchSecurityInfo' | 'setLaunchSecurityState'
  >;
  /** Firmware of confidential guests; it may be missing. */
  readonly firmwarePath: string;
}

/** SEV's attestation of a guest before it runs. */
export interface LaunchSecurity {
  /** SEVPlatformInfo as JSON: the node's keys. */
  platformInfo(): Promise<string>;
  /** SEVMeasurementInfo as JSON: what the guest was launched with. */
  measurement(vmi: Vmi): Promise<string>;
  /** @param options SEVSecretOptions as JSON */
  injectSecret(vmi: Vmi, options: string): Promise<void>;
}

/** JSON of the fields that are known; Go leaves out what is empty or zero. */
function renderKnown(fields: Readonly<Record<string, string | number | bigint | boolean | undefined>>): string {
  const known = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== '' && Number(value) !== 0,
  );
  return JSON.stringify(Object.fromEntries(known.map(([key, v]) => [key, typeof v === 'bigint' ? Number(v) : v])));
}

function parseSecret(options: string): { readonly header: string; readonly secret: string } {
  let parsed: unknown;
  try {
    parsed = parseJson(options);
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) {
    throw new LauncherError('BadRequest', 'No valid secret options present in command server request');
  }
  const { header, secret } = parsed as Readonly<Record<string, unknown>>;
  return { header: typeof header === 'string' ? header : '', secret: typeof secret === 'string' ? secret : '' };
}

async function firmwareHash(path: string): Promise<string> {
  let firmware: Uint8Array;
  try {
    firmware = await readFile(path);
  } catch (caught) {
    throw new LauncherError('BadRequest', 'open : no such file or directory', { cause: caught });
  }
  return createHash('sha256').update(firmware).digest('hex');
}

function renderMeasurement(params: Params, loaderSHA: string): string {
  return renderKnown({
    measurement: params.get('sev-measurement'),
    apiMajor: params.get('sev-api-major'),
    apiMinor: params.get('sev-api-minor'),
    buildID: params.get('sev-build-id'),
    policy: params.get('sev-policy'),
    loaderSHA,
  });
}

/** Creates the operations. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetSEVInfo` */
export function createLaunchSecurity({ libvirt, firmwarePath }: LaunchSecurityDeps): LaunchSecurity {
  const find = ({ metadata }: Vmi) => libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name));
  return {
    async platformInfo() {
      const params = await libvirt.getSevInfo();
      return renderKnown({ pdh: params.get('pdh'), certChain: params.get('cert-chain') });
    },
    async measurement(vmi) {
      const params = await libvirt.getLaunchSecurityInfo(await find(vmi));
      return renderMeasurement(params, await firmwareHash(firmwarePath));
    },
    async injectSecret(vmi, options) {
      const { header, secret } = parseSecret(options);
      if (header === '') throw new LauncherError('BadRequest', 'Header is required');
      if (secret === '') throw new LauncherError('BadRequest', 'Secret is required');
      await libvirt.setLaunchSecurityState(await find(vmi), { header, secret });
    },
  };
}
