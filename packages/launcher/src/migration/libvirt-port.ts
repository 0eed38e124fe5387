import type { DomainRef, ParamValue } from '../domain/libvirt-port.ts';

/** Parameters of a migration by libvirt's names; a list is sent as a repeated parameter. */
export type MigrateParams = Readonly<Record<string, ParamValue | readonly string[]>>;

/** Ends what was registered. */
export type Unregister = () => Promise<void>;

/** What only migrations ask of libvirt. What libvirt itself refuses is a `LibvirtCallError`. */
export interface MigrationCalls {
  /**
   * Peer-to-peer migration; returns when it is over. It has a connection of its own, since it holds it for long.
   *
   * @param uri where the source's daemon finds the target's.
   */
  migrateToUri(domain: DomainRef, uri: string, params: MigrateParams, flags: number): Promise<void>;
  startPostCopy(domain: DomainRef): Promise<void>;
  setMaxDowntime(domain: DomainRef, downtimeMs: number): Promise<void>;
  /** Told at the end of each pass over the guest's memory. */
  onMigrationIteration(domainName: string, listener: () => void): Promise<Unregister>;
  /** Told the alias of each device that the guest let go of. */
  onDeviceRemoved(domainName: string, listener: (alias: string) => void): Promise<Unregister>;
}
