import type { CmdClient } from '@virtwire/shared-proto';
import { ProtoError } from '@virtwire/shared-proto';
import { ANY_ERA } from '@virtwire/shared-proto/compat-rules';
import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { recordedLog } from '../testing/silent-log.ts';
import { createExecutors } from './executors.ts';
import type { ExecutorsDeps } from './executors.ts';
import type { Pass } from './pass.ts';

const vmi = parseVmiJson('{"metadata":{"name":"vm","namespace":"ns","uid":"u"}}');

/** What a sync comes to that a launcher answers with a failure. */
async function syncFailing(message: string): Promise<unknown> {
  const error = new ProtoError('Failed', `server error. command SyncVMI failed: "${message}"`, { detail: message });
  const client = { syncVirtualMachine: () => Promise.resolve({ ok: false, error }) } as unknown as CmdClient;
  const deps = { launchers: { get: () => Promise.resolve(client), eraOf: () => ANY_ERA } } as unknown as ExecutorsDeps;
  const pass = { key: 'ns/vm', vmi, log: recordedLog(), client } as unknown as Pass;
  const sync = createExecutors(deps).syncDomain({ kind: 'syncDomain', vmi, options: {} }, pass);
  return sync.then(
    () => undefined,
    (caught: unknown) => caught,
  );
}

const MODE = 'for booting in EFI mode with SecureBoot=true, SEV/SEV-ES=false, SEV-SNP=false, TDX=false';

test.each([
  ['as every launcher prints it', `EFI OVMF roms missing ${MODE}`],
  ['as the handler of KubeVirt looks for it', `EFI OVMF rom missing ${MODE}`],
])('missing firmware, %s, is a mismatch that no retry mends', async (_title, message) => {
  expect(await syncFailing(message)).toMatchObject({
    code: 'SecureBootMismatch',
    message: expect.stringContaining('mismatch of Secure Boot setting and bootloaders: ') as string,
  });
});

test('another failure stays what it is', async () => {
  expect(await syncFailing('no OVMF at all')).toMatchObject({ code: 'Failed' });
});
