import { typedParams } from '@virtwire/libvirt';
import type { Connection, Domain } from '@virtwire/libvirt';
import type { DomainRef } from '../domain/libvirt-port.ts';
import type { MigrationCalls } from '../migration/libvirt-port.ts';
import { translating } from './libvirt-adapter.ts';

/** What migrations ask of a libvirt connection. */
export function migrationCalls(connection: Connection): MigrationCalls {
  const at = (ref: DomainRef): Domain => connection.domain(ref);
  return translating<MigrationCalls>({
    async migrateToUri(ref, uri, params, flags) {
      await using own = await connection.duplicate();
      await own.domain(ref).migrateToUri(uri, typedParams(params), flags);
    },
    startPostCopy: (ref) => at(ref).migrateStartPostCopy(),
    setMaxDowntime: (ref, downtimeMs) => at(ref).migrateSetMaxDowntime(BigInt(downtimeMs)),
    async onMigrationIteration(name, listener) {
      const subscription = await connection.onDomainEvent('migrationIteration', ({ domain }) => {
        if (domain.name === name) listener();
      });
      return () => subscription.close();
    },
    async onDeviceRemoved(name, listener) {
      const subscription = await connection.onDomainEvent('deviceRemoved', ({ domain, devAlias }) => {
        if (domain.name === name) listener(devAlias);
      });
      return () => subscription.close();
    },
  });
}
