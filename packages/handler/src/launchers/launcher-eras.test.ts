import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ProtoError } from '@virtwire/shared-proto';
import type { CallResult, CmdResponse, CmdRpc } from '@virtwire/shared-proto';
import { ANY_ERA } from '@virtwire/shared-proto/compat-rules';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recordedLog } from '../testing/silent-log.ts';
import { openLauncherEras } from './launcher-eras.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync('/tmp/virtwire-eras-');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

type Result = CallResult<CmdResponse<CmdRpc>>;
const open = (known: readonly string[] = ['uid-1']) =>
  openLauncherEras(directory, (uid) => known.includes(uid), recordedLog());
const missing: Result = { ok: false, error: new ProtoError('Unimplemented', 'unknown method') };
const failed: Result = { ok: false, error: new ProtoError('Failed', 'no domain') };
const lost: Result = { ok: false, error: new ProtoError('Unavailable', 'gone') };
const V17 = '{"Spec":{"VCPUs":null,"CurrentMemory":null,"Devices":{"PanicDevices":null}}}';

test('an UNIMPLEMENTED answer and one with content bound the era, a lost call says nothing', () => {
  const eras = open();
  eras.begin('uid-1', '/pods/a/launcher-sock');
  expect(eras.eraOf('uid-1')).toEqual(ANY_ERA);
  eras.noteResult('uid-1', 'GetVMStats', lost);
  expect(eras.eraOf('uid-1')).toEqual(ANY_ERA);
  eras.noteResult('uid-1', 'GetDomainDirtyRateStats', missing);
  expect(eras.eraOf('uid-1')).toEqual({ since: undefined, until: 'v1.6.0' });
  eras.noteResult('uid-1', 'GetSEVInfo', failed);
  expect(eras.eraOf('uid-1')).toEqual({ since: 'v1.1.0', until: 'v1.6.0' });
});

test('a domain tells the era, whether it was asked for or came with an event', () => {
  const eras = open();
  eras.begin('uid-1', '/pods/a/launcher-sock');
  const value = { response: { success: true, message: '' }, domain: V17 };
  eras.noteResult('uid-1', 'GetDomain', { ok: true, value });
  expect(eras.eraOf('uid-1')).toEqual({ since: 'v1.6.0', until: 'v1.8.0' });
  eras.begin('uid-2', '/pods/b/launcher-sock');
  eras.noteDomain('uid-2', V17);
  expect(eras.eraOf('uid-2')).toEqual({ since: 'v1.6.0', until: 'v1.8.0' });
});

test('what was learned is known after a restart, and belongs to the socket that it was learned from', () => {
  const before = open();
  before.begin('uid-1', '/pods/a/launcher-sock');
  before.noteDomain('uid-1', V17);
  const after = open();
  after.begin('uid-1', '/pods/a/launcher-sock');
  expect(after.eraOf('uid-1')).toEqual({ since: 'v1.6.0', until: 'v1.8.0' });
  after.begin('uid-1', '/pods/b/launcher-sock');
  expect(after.eraOf('uid-1')).toEqual(ANY_ERA);
});

test('a file goes with its launcher, and one without a ghost record goes at the next start', () => {
  const eras = open();
  for (const uid of ['uid-1', 'uid-2']) {
    eras.begin(uid, `/pods/${uid}/launcher-sock`);
    eras.noteDomain(uid, V17);
  }
  eras.forget('uid-1');
  expect(readdirSync(join(directory, 'launcher-eras'))).toEqual(['uid-2']);
  open([]);
  expect(readdirSync(join(directory, 'launcher-eras'))).toEqual([]);
});

test('a UID that is no file name is never one', () => {
  const eras = open();
  eras.begin('../escaped', '/pods/a/launcher-sock');
  eras.noteDomain('../escaped', V17);
  expect(existsSync(join(directory, 'escaped'))).toBe(false);
  expect(eras.eraOf('../escaped')).toEqual(ANY_ERA);
});

test.each([
  '',
  '{',
  'null',
  '{"socketFile":"/a"}',
  '{"socketFile":"/a","facts":{"served":[1],"missing":[],"bounds":[]}}',
])('a damaged file %j is learned again', (text) => {
  mkdirSync(join(directory, 'launcher-eras'));
  writeFileSync(join(directory, 'launcher-eras/uid-1'), text);
  const eras = open();
  expect(eras.eraOf('uid-1')).toEqual(ANY_ERA);
  expect(readdirSync(join(directory, 'launcher-eras'))).toEqual([]);
});
