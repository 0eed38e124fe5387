import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { renderProblem } from '../manifest/problem.ts';
import { readManifests } from './manifest-set.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-set-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(file: string, name: string, memory = '64Mi'): void {
  const vmi = {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name } },
    spec: { domain: { memory: { guest: memory } } },
  };
  writeFileSync(join(dir, file), JSON.stringify(vmi));
}

const lines = (): string[] => readManifests(dir).problems.map((p) => renderProblem(p).replaceAll(dir, 'DIR'));

test('two VMs of one name: the first file is used, the second is told', () => {
  write('a.json', 'web');
  write('b.json', 'web');
  expect(lines()).toEqual(['DIR/b.json: metadata.name: VM default/web is in DIR/a.json already: that one is used']);
  expect(readManifests(dir).wanted.get('default/web')?.file).toBe(join(dir, 'a.json'));
});

test('a wrong file does not keep the others from being read', () => {
  write('a.json', 'good');
  write('b.json', 'bad', '1Gigs');
  writeFileSync(join(dir, 'c.yaml'), '{');
  expect([...readManifests(dir).wanted.keys()]).toEqual(['default/good']);
  expect(lines()).toHaveLength(2);
});

test('files that are no manifests are passed over', () => {
  writeFileSync(join(dir, 'README'), 'hello');
  writeFileSync(join(dir, '.hidden.yaml'), '{');
  expect(readManifests(dir)).toMatchObject({ problems: [], hasFaultyFiles: false });
});

test('the hash changes with the manifest alone', () => {
  write('a.json', 'web');
  const hash = (): string | undefined => readManifests(dir).wanted.get('default/web')?.hash;
  const before = hash();
  expect(hash()).toBe(before);
  write('a.json', 'web', '65Mi');
  expect(hash()).not.toBe(before);
});
