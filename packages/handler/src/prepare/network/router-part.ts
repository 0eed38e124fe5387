import { objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { inPodBridgeName } from '@virtwire/vm-model';
import type { Vmi } from '../../model.ts';
import type { Isolation, RouterPart } from '../parts.ts';
import { cidrOf, firstGlobal } from './addresses.ts';
import type { Advertiser } from './advertise.ts';
import { openPodKernel } from './kernel.ts';
import { hashedNameOf } from './names.ts';

/**
 * Router advertisements for guests behind masquerade. KubeVirt has none, so that such a guest gets an IPv6 address but no
 * default route. The node agent sends them, since a launcher may not open the raw socket that this takes.
 */
export function createRouterPart({ log }: { readonly log: Logger }): RouterPart {
  const running = new Map<string, readonly Advertiser[]>();
  return {
    isServing: (uid) => running.has(uid),
    start(vmi, launcher) {
      const { uid } = vmi.metadata;
      if (!running.has(uid)) running.set(uid, startAll(vmi, launcher, log.child(objectFields(vmi))));
    },
    stop(uid) {
      for (const advertiser of running.get(uid) ?? []) advertiser[Symbol.dispose]();
      running.delete(uid);
    },
  };
}

function startAll(vmi: Vmi, launcher: Isolation, log: Logger): readonly Advertiser[] {
  using kernel = openPodKernel(launcher);
  const links = kernel.read().interfaces;
  const started: Advertiser[] = [];
  try {
    for (const bridge of bridgesOf(vmi)) {
      const link = links.find((l) => l.name === bridge);
      const address = firstGlobal(link?.IPv6 ?? {});
      const { 'mac-address': mac, mtu } = link ?? {};
      if (address === undefined || mac === undefined || mtu === undefined) continue;
      started.push(kernel.advertiseRouter(bridge, { mac, mtu, gateway: cidrOf(address) }, log));
      log.info(`advertising the IPv6 gateway ${address.IP} on ${bridge}`);
    }
    return started;
  } catch (caught) {
    for (const advertiser of started) advertiser[Symbol.dispose]();
    throw caught;
  }
}

function bridgesOf(vmi: Vmi): string[] {
  return (vmi.spec.domain.devices.interfaces ?? []).flatMap((iface) => {
    const network = vmi.spec.networks?.find((n) => n.name === iface.name);
    if (iface.masquerade === undefined || iface.state === 'absent' || network === undefined) return [];
    return [inPodBridgeName(hashedNameOf(vmi, network))];
  });
}
