import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { connect, isLibvirtError } from '@virtwire/libvirt';
import { privateDaemonObstacle, startPrivateDaemon } from '@virtwire/libvirt/testing';
import { type DomainSpec, renderDomainXml } from '@virtwire/vm-model';

import { completeForLibvirt } from '../src/converter/complete-for-libvirt.ts';
import { convertVmi } from '../src/converter/convert.ts';
import { resolveConverterContext } from '../src/converter/resolve-context.ts';
import { arbitraryConversion } from '../src/testing/arbitrary-vmi.ts';

/** What older releases of libvirt and QEMU, or this machine, cannot do: no fault of the XML. */
const LACKING: readonly RegExp[] = [
  // Without swtpm.
  /^unsupported configuration: TPM version '2.0' is not supported$/,
  // Without the hardware.
  /^unsupported configuration: SEV launch security is not supported with this QEMU binary$/,
  // Before libvirt 10.5 and 11.6.
  /^XML error: Invalid value for attribute 'type' in element 'launchSecurity': '(sev-snp|tdx)'\.$/,
  // A vhost-user card by passt, before libvirt 11.1.
  /^XML error: Missing required attribute 'type' in element 'source'$/,
];
const obstacle = privateDaemonObstacle();

/** What phase 2 of the network adds before the define. */
function withTaps(spec: DomainSpec): DomainSpec {
  const interfaces = spec.Devices.Interfaces?.map((iface, index) => ({
    ...iface,
    Target: { Device: `tap${String(index)}`, Managed: 'no' },
  }));
  return interfaces === undefined ? spec : { ...spec, Devices: { ...spec.Devices, Interfaces: interfaces } };
}

describe.skipIf(obstacle !== undefined)(`libvirt takes what the converter makes ${obstacle ?? ''}`, () => {
  test('any VMI is defined, or refused only for what this QEMU lacks', async () => {
    await using daemon = await startPrivateDaemon();
    await using connection = await connect({ uri: daemon.uri, socketPath: daemon.socketPath });
    const version = await connection.getLibVersion();
    let defined = 0;
    const lacking = new Set<string>();
    await fc.assert(
      fc.asyncProperty(arbitraryConversion, async ({ vmi, circumstances }) => {
        const { Spec } = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
        const xml = renderDomainXml(completeForLibvirt(withTaps(Spec), version));
        try {
          const domain = await connection.defineDomainXml(xml);
          await domain.undefine();
          defined++;
        } catch (error) {
          if (!isLibvirtError(error) || !LACKING.some((reason) => reason.test(error.message))) throw error;
          lacking.add(error.message);
        }
      }),
      { numRuns: 500 },
    );
    expect(defined, [...lacking].join('\n')).toBeGreaterThan(250);
  });
});
