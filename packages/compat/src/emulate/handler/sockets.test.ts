import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { parseVmiJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { factsOf } from '../lines/lines.ts';
import { startEmulatedHandler } from './handler.ts';
import { findSocket, listSockets, removeRecord, type SocketDirs, writeRecord } from './sockets.ts';

const vmi = parseVmiJson(
  JSON.stringify({
    metadata: { namespace: 'default', name: 'vm1', uid: 'uid-1' },
    status: { activePods: { here: 'node01', there: 'node02' } },
  }),
);

let dirs: SocketDirs & { readonly root: string };

beforeEach(() => {
  const root = mkdtempSync(join(tmpdir(), 'compat-'));
  dirs = {
    root,
    podsDir: join(root, 'pods'),
    recordsDir: join(root, 'share-private', 'ghost-records'),
    nodeName: 'node01',
  };
  mkdirSync(dirs.podsDir);
});
afterEach(() => rmSync(dirs.root, { recursive: true, force: true }));

function makeSocket(pod: string): string {
  const dir = join(dirs.podsDir, pod, 'volumes/kubernetes.io~empty-dir/sockets');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'launcher-sock'), '');
  return join(dir, 'launcher-sock');
}

test('up to v1.5 a second pod of a VM is one too many, from v1.6 on only one of the same node', () => {
  const here = makeSocket('here');
  makeSocket('there');
  expect(() => findSocket(dirs, factsOf('v1.5').handler, vmi, 'here')).toThrow(
    'Found multiple sockets for vmi default/vm1. waiting for only one to exist',
  );
  expect(findSocket(dirs, factsOf('v1.6').handler, vmi, 'here')).toBe(here);
});

test('a VM without a socket is not found', () => {
  expect(() => findSocket(dirs, factsOf('v1.9').handler, vmi, 'here')).toThrow('No command socket found for vmi uid-1');
});

test('up to v1.4 a listing finds sockets without a ghost record, later ones only those with one', () => {
  const socketFile = makeSocket('here');
  const found = (line: 'v1.4' | 'v1.5'): number => listSockets(dirs, factsOf(line).handler).length;
  expect([found('v1.4'), found('v1.5')]).toEqual([1, 0]);
  writeRecord(dirs, { name: 'vm1', namespace: 'default', socketFile, uid: 'uid-1' });
  expect([found('v1.4'), found('v1.5')]).toEqual([1, 1]);
  removeRecord(dirs, 'uid-1');
  expect(found('v1.5')).toBe(0);
});

test.each([
  ['v1.8', undefined],
  ['v1.9', 'Unknown'],
] as const)('a handler of %s lists a launcher that does not answer as %s', async (line, status) => {
  const socketFile = join(dirs.podsDir, 'gone');
  writeRecord(dirs, { name: 'vm1', namespace: 'default', socketFile, uid: 'uid-1' });
  await using handler = await startEmulatedHandler({
    line,
    podsDir: dirs.podsDir,
    shareDir: join(dirs.root, 'share'),
    podShareDir: () => join(dirs.root, 'pod'),
  });
  await handler.run('resync', { ...vmi }, 'here');
  const domain = handler.domain(vmi.metadata) as { readonly Status?: { readonly Status?: string } } | undefined;
  expect(domain?.Status?.Status).toBe(status);
});
