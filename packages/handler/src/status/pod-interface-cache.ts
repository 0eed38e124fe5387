import type { Vmi } from '../model.ts';
import type { NetworkPart, PodInterface } from '../prepare/parts.ts';

/**
 * Pod-side addresses as they were first read, so that the status does not flap while files come and go.
 *
 * @source KubeVirt v1.9.0 pkg/network/setup/netstat.go (podInterfaceVolatileCache)
 */
export interface PodInterfaceCache {
  get(vmi: Vmi, interfaceName: string): Promise<PodInterface | undefined>;
  /** Forgets interfaces that the spec calls absent; they are read anew when asked for again. */
  dropAbsent(vmi: Vmi): void;
  drop(uid: string): void;
}

/** Builds a cache over a network part. */
export function createPodInterfaceCache(network: NetworkPart): PodInterfaceCache {
  const known = new Map<string, Map<string, PodInterface | undefined>>();
  return {
    async get(vmi, interfaceName) {
      const { uid } = vmi.metadata;
      const ofVmi = known.get(uid) ?? new Map<string, PodInterface | undefined>();
      known.set(uid, ofVmi);
      if (ofVmi.has(interfaceName)) return ofVmi.get(interfaceName);
      const found = await network.podInterface(vmi, interfaceName);
      ofVmi.set(interfaceName, found);
      return found;
    },
    dropAbsent(vmi) {
      const ofVmi = known.get(vmi.metadata.uid);
      for (const iface of vmi.spec.domain.devices.interfaces ?? []) {
        if (iface.state === 'absent') ofVmi?.delete(iface.name);
      }
    },
    drop: (uid) => void known.delete(uid),
  };
}
