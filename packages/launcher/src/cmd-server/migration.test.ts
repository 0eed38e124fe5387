import { cmdV1 } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import type { MigrationParts } from '../migration/parts.ts';
import { migrationHandlers } from './migration.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const vmi = { vmiJson: Buffer.from('{"metadata":{"namespace":"ns","name":"vm","uid":"u"},"spec":{"domain":{}}}') };

/** The methods with a migration that notes what it is asked for. */
function world() {
  const asked: unknown[] = [];
  const migration: MigrationParts = {
    source: {
      migrate: () => undefined,
      cancel: () => undefined,
      isActive: () => false,
      settled: () => Promise.resolve(),
      numbers: () => undefined,
    },
    target: {
      prepare: (_vmi, options) => Promise.resolve(void asked.push(['prepare', options?.PreallocatedVolumes])),
      stop: () => undefined,
    },
    finalize: (_vmi, migrations) => Promise.resolve(void asked.push(['finalize', ...migrations])),
    settle: () => Promise.resolve(),
    stop: () => undefined,
  };
  const handlers = migrationHandlers({
    ...{ migration, log },
    writer: { noteOptions: (options, agent) => void asked.push(['note', options.PreallocatedVolumes, agent]) },
    plugins: { set: (text) => void asked.push(['plugins', text]) },
  });
  return { handlers, asked };
}

test('a target learns from the options and the name of its caller before it prepares', async () => {
  const { handlers, asked } = world();
  const options = cmdV1.VirtualMachineOptions.fromPartial({
    PreallocatedVolumes: ['a'],
    pluginsJson: Buffer.from('[{"name":"p"}]'),
  });
  const context = { signal: new AbortController().signal, userAgent: 'grpc-go/1.58.3' };
  await handlers.syncMigrationTarget(cmdV1.VMIRequest.fromPartial({ vmi, options }), context);
  expect(asked).toEqual([
    ['plugins', '[{"name":"p"}]'],
    ['note', ['a'], 'grpc-go/1.58.3'],
    ['prepare', ['a']],
  ]);
});

test('a target without options has no plugins, and is prepared without a wish', async () => {
  const { handlers, asked } = world();
  await handlers.syncMigrationTarget(cmdV1.VMIRequest.fromPartial({ vmi }));
  expect(asked).toEqual([
    ['plugins', ''],
    ['prepare', undefined],
  ]);
});

test('how interfaces are told that they moved comes with the options', async () => {
  const { handlers, asked } = world();
  const interfaceMigration = new Map([['net', { Method: 'link-refresh' }]]);
  await handlers.finalizeVirtualMachineMigration(
    cmdV1.VMIRequest.fromPartial({ vmi, options: { interfaceMigration } }),
  );
  await handlers.finalizeVirtualMachineMigration(cmdV1.VMIRequest.fromPartial({ vmi }));
  expect(asked).toMatchObject([['finalize', ['net', { Method: 'link-refresh' }]], ['finalize']]);
});
