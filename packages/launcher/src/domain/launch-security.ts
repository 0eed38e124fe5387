import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { domainName } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { sevMeasurementInfo, sevPlatformInfo, sevSecretOptions } from '@virtwire/vm-model/payloads';
import type { SevSecretOptions } from '@virtwire/vm-model/payloads';
import { LauncherError } from '../errors.ts';
import type { LibvirtPort, Params, ParamValue } from './libvirt-port.ts';

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

function asText(value: ParamValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function asNumber(value: ParamValue | undefined): number | bigint {
  return typeof value === 'number' || typeof value === 'bigint' ? value : 0;
}

function parseSecret(options: string): SevSecretOptions {
  try {
    return sevSecretOptions.parse(options);
  } catch (caught) {
    const message = 'No valid secret options present in command server request';
    throw new LauncherError('BadRequest', message, { cause: caught });
  }
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
  return sevMeasurementInfo.render({
    ...sevMeasurementInfo.zero(),
    measurement: asText(params.get('sev-measurement')),
    apiMajor: asNumber(params.get('sev-api-major')),
    apiMinor: asNumber(params.get('sev-api-minor')),
    buildID: asNumber(params.get('sev-build-id')),
    policy: asNumber(params.get('sev-policy')),
    loaderSHA,
  });
}

/** Creates the operations. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetSEVInfo` */
export function createLaunchSecurity({ libvirt, firmwarePath }: LaunchSecurityDeps): LaunchSecurity {
  const find = ({ metadata }: Vmi) => libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name));
  return {
    async platformInfo() {
      const params = await libvirt.getSevInfo();
      return sevPlatformInfo.render({ pdh: asText(params.get('pdh')), certChain: asText(params.get('cert-chain')) });
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
