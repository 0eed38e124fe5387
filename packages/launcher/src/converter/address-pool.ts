import type { Circumstances } from './circumstances.ts';

/**
 * Addresses of host devices by resource, from the environment that the kubelet gave the launcher.
 * An address that was taken is gone from every resource.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/addresspool.go
 */
export class AddressPool {
  readonly #byResource = new Map<string, string[]>();

  constructor(prefix: string, resources: readonly string[], environment: Circumstances['environment']) {
    for (const resource of resources) {
      const value = environment[resourceVariable(prefix, resource)];
      if (value === undefined) continue;
      this.#byResource.set(
        resource,
        value
          .replace(/,$/, '')
          .split(',')
          .filter((address) => address !== ''),
      );
    }
  }

  /** Takes the next address of a resource; undefined when there is none. */
  take(resource: string): string | undefined {
    const address = this.#byResource.get(resource)?.[0];
    if (address === undefined) return undefined;
    for (const [name, addresses] of this.#byResource) {
      this.#byResource.set(
        name,
        addresses.filter((other) => other !== address),
      );
    }
    return address;
  }
}

/** Name of the environment variable that carries a resource's addresses. */
export function resourceVariable(prefix: string, resource: string): string {
  return `${prefix}_${resource.toUpperCase().replaceAll('/', '_').replaceAll('.', '_')}`;
}
