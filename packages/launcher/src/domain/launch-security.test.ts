import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseVmiJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLaunchSecurity } from './launch-security.ts';
import type { LaunchSecurity } from './launch-security.ts';
import type { ParamValue } from './libvirt-port.ts';

const vmi = parseVmiJson('{"metadata":{"name":"vm","namespace":"ns","uid":"u"}}');
const EMPTY_SHA = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'virtwire-sev-'))));
afterEach(() => rmSync(dir, { recursive: true }));

function security(params: Readonly<Record<string, ParamValue>>, secrets: unknown[] = []): LaunchSecurity {
  const found = new Map(Object.entries(params));
  return createLaunchSecurity({
    firmwarePath: join(dir, 'OVMF_CODE.cc.fd'),
    libvirt: {
      lookupDomainByName: (name) => Promise.resolve({ name, uuid: '1', id: 1 }),
      getSevInfo: () => Promise.resolve(found),
      getLaunchSecurityInfo: () => Promise.resolve(found),
      setLaunchSecurityState: (_domain, secret) => Promise.resolve(void secrets.push(secret)),
    },
  });
}

test("the node's keys are printed as Go does, and what is not known is left out", async () => {
  expect(await security({ pdh: 'a+b=', 'cert-chain': '<c>' }).platformInfo()).toBe(
    '{"pdh":"a+b=","certChain":"\\u003cc\\u003e"}',
  );
  expect(await security({}).platformInfo()).toBe('{}');
});

test('a measurement has its 64-bit policy, and the hash of the firmware', async () => {
  writeFileSync(join(dir, 'OVMF_CODE.cc.fd'), '');
  const params = { 'sev-measurement': 'm', 'sev-api-major': 1, 'sev-api-minor': 0, 'sev-policy': 2n ** 63n };
  expect(await security(params).measurement(vmi)).toBe(
    `{"measurement":"m","apiMajor":1,"policy":9223372036854775808,"loaderSHA":"${EMPTY_SHA}"}`,
  );
});

test('without the firmware there is no measurement, in the words of the model', async () => {
  await expect(security({}).measurement(vmi)).rejects.toThrow('open : no such file or directory');
});

test.each([
  ['', 'No valid secret options present in command server request'],
  ['{"header":', 'No valid secret options present in command server request'],
  ['[]', 'No valid secret options present in command server request'],
  ['{"header":5}', 'No valid secret options present in command server request'],
  ['null', 'Header is required'],
  ['{"secret":"s"}', 'Header is required'],
  ['{"header":"h"}', 'Secret is required'],
])('a secret of %j is refused: %s', async (options, message) => {
  await expect(security({}).injectSecret(vmi, options)).rejects.toThrow(message);
});

test('a whole secret is handed to libvirt', async () => {
  const secrets: unknown[] = [];
  await security({}, secrets).injectSecret(vmi, '{"header":"h","secret":"s"}');
  expect(secrets).toEqual([{ header: 'h', secret: 's' }]);
});
