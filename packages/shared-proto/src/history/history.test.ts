import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';

import { readBundle } from '../testing/bundle.ts';
import { openHistory } from './history.ts';

const history = openHistory();

interface Reference {
  readonly releases: readonly string[];
  readonly files: readonly {
    readonly file: string;
    readonly textVersions: readonly { readonly since: string; readonly textId: string }[];
    readonly services: readonly { readonly rpcs: readonly ReferenceElement[] }[];
    readonly messages: readonly (ReferenceElement & { readonly fields: readonly ReferenceElement[] })[];
  }[];
}
interface ReferenceElement {
  readonly name: string;
  readonly presence: readonly { readonly since: string; readonly until: string | null }[];
}
const reference = readBundle('wire-history').get('history.json') as Reference;

/** Names of what the reference says a release has, worked out from its presence ranges alone. */
function referenceElements(release: string): readonly string[] {
  const at = reference.releases.indexOf(release);
  const place = (tag: string | null): number => (tag === null ? Infinity : reference.releases.indexOf(tag));
  const isIn = ({ presence }: ReferenceElement): boolean =>
    presence.some(({ since, until }) => place(since) <= at && at < place(until));
  return reference.files.flatMap((file) => [
    ...file.services.flatMap((service) => service.rpcs.filter(isIn).map(({ name }) => `rpc ${name}`)),
    ...file.messages
      .filter(isIn)
      .flatMap((message) => [
        `message ${message.name}`,
        ...message.fields.filter(isIn).map(({ name }) => `field ${message.name}.${name}`),
      ]),
  ]);
}

/** The same names, read back out of a release's descriptors. */
function describedElements(release: string): readonly string[] {
  return fromBinary(FileDescriptorSetSchema, history.descriptorSet(release)).file.flatMap((file) => [
    ...file.service.flatMap((service) => service.method.map(({ name }) => `rpc ${name}`)),
    ...file.messageType.flatMap((message) => [
      `message ${message.name}`,
      ...message.field.map(({ name }) => `field ${message.name}.${name}`),
    ]),
  ]);
}

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Digests of each file's descriptor by release. */
function fileDigests(): ReadonlyMap<string, readonly string[]> {
  const all = history.releases.map((release) => {
    const { file } = fromBinary(FileDescriptorSetSchema, history.descriptorSet(release));
    return [release, file.map((one) => digest(toBinary(FileDescriptorProtoSchema, one)))] as const;
  });
  return new Map(all);
}

/** Releases of the cmd file's texts, one for each text that differs. */
function distinctReleases(): readonly string[] {
  const texts = history.files[0]?.texts ?? [];
  return [...new Map(texts.map(({ since, textId }) => [textId, since])).values()];
}

/** Compiles proto texts with buf, the way the published stubs were compiled; no source information. */
function compile(texts: ReadonlyMap<string, string>): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-history-'));
  try {
    for (const [path, text] of texts) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    }
    const buf = join(import.meta.dirname, '../../../../node_modules/.bin/buf');
    const target = join(directory, 'set.binpb');
    const options = ['--as-file-descriptor-set', '--exclude-source-info', '-o', target];
    execFileSync(buf, ['build', directory, ...options], { env: { ...process.env, HOME: directory } });
    return readFileSync(target);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

describe('the history', () => {
  test('has all 145 releases, each with four files and exactly its RPCs, messages and fields', () => {
    expect(history.releases).toEqual(reference.releases);
    expect(history.releases).toHaveLength(145);
    for (const release of reference.releases) {
      expect(history.filesOf(release)).toHaveLength(4);
      expect(describedElements(release), release).toEqual(referenceElements(release));
    }
  });

  test('changes exactly where the texts of the released files change, and comes back where they come back', () => {
    const digests = fileDigests();
    for (const [place, file] of reference.files.entries()) {
      const byText = new Map<string, Set<string>>();
      let textId = '';
      for (const release of reference.releases) {
        textId = file.textVersions.find(({ since }) => since === release)?.textId ?? textId;
        const known = byText.get(textId) ?? new Set();
        byText.set(textId, known.add(digests.get(release)?.[place] ?? ''));
      }
      expect([...byText.values()].map((set) => set.size)).toEqual([...byText.values()].map(() => 1));
      const distinct = new Set([...byText.values()].flatMap((set) => [...set]));
      expect(distinct.size).toBe(byText.size);
      expect(byText.size).toBe(new Set(file.textVersions.map((text) => text.textId)).size);
    }
  });

  test('gives descriptor sets that a compiler makes of its proto texts, byte for byte', { timeout: 300_000 }, () => {
    for (const release of distinctReleases()) {
      const compiled = fromBinary(FileDescriptorSetSchema, compile(history.protoTexts(release)));
      const ours = fromBinary(FileDescriptorSetSchema, history.descriptorSet(release));
      const bytesOf = (set: typeof ours): Map<string, string> =>
        new Map(
          set.file.map((file) => [file.name, Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString('hex')]),
        );
      expect(bytesOf(ours), release).toEqual(bytesOf(compiled));
    }
  });

  test('gives the sets that protoc 3.21.12 wrote of all releases, byte for byte', () => {
    const all = createHash('sha256');
    for (const release of history.releases) all.update(history.descriptorSet(release));
    expect(all.digest('hex')).toBe('5bacd743c7ef566a43cf3d4e4457386a418064312a6328a98843d145b96a3fc7');
  });

  test('gives sets that link, whatever the release', () => {
    for (const release of history.releases) {
      const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, history.descriptorSet(release)));
      expect(registry.getService('kubevirt.cmd.v1.Cmd')?.methods.length, release).toBeGreaterThan(9);
    }
  });

  test.each([
    ['v0.36.0', 16],
    ['v0.36.5', 17],
    ['v0.44.0', 21],
    ['v0.48.0', 22],
    ['v0.50.0', 23],
    ['v0.54.0', 24],
    ['v1.0.0', 26],
    ['v1.1.0', 30],
    ['v1.4.1', 30],
    ['v1.5.0', 31],
    ['v1.6.0', 32],
    ['v1.7.0', 33],
    ['v1.8.0', 35],
    ['v1.9.0', 36],
  ])('%s has %i RPCs', (release, count) => {
    expect(history.filesOf(release)[0]?.rpcs).toHaveLength(count);
  });
});

describe('look-ups', () => {
  test('SignalTargetPodCleanup was there, away, and there again', () => {
    expect(history.rpc('SignalTargetPodCleanup')?.presence).toEqual([
      { since: 'v0.36.3', until: 'v0.37.0' },
      { since: 'v0.41.0', until: undefined },
    ]);
    const has = (release: string): boolean => history.hasRpc(release, 'SignalTargetPodCleanup');
    expect(['v0.36.2', 'v0.36.5', 'v0.37.0', 'v0.40.1', 'v0.41.0', 'v1.9.0'].map(has)).toEqual([
      false,
      true,
      false,
      false,
      true,
      true,
    ]);
  });

  test('FreezeVirtualMachine changed its request', () => {
    expect(history.rpc('FreezeVirtualMachine')?.presence).toEqual([{ since: 'v0.44.0', until: undefined }]);
    expect(history.shape('v0.46.1', 'FreezeVirtualMachine')?.request).toBe('VMIRequest');
    expect(history.shape('v0.47.1', 'FreezeVirtualMachine')?.request).toBe('FreezeRequest');
    expect(history.shape('v0.43.0', 'FreezeVirtualMachine')).toBeUndefined();
  });

  test('fields tell since when they exist, in patch releases too', () => {
    expect(history.hasField('v1.1.0', 'VirtualMachineOptions', 'interfaceDomainAttachment')).toBe(false);
    expect(history.hasField('v1.1.1', 'VirtualMachineOptions', 'interfaceDomainAttachment')).toBe(true);
    expect(history.field('CPU', 'siblings')?.presence).toHaveLength(2);
    expect(history.field('VirtualMachineOptions', 'DisksInfo')?.type).toEqual({
      kind: 'map',
      key: 'string',
      type: 'DiskInfo',
    });
  });

  test('RPCs, fields and releases that never were have nothing', () => {
    expect(history.hasRpc('v1.9.0', 'Nothing')).toBe(false);
    expect(history.hasRpc('v9.9.9', 'Ping')).toBe(false);
    expect(history.field('Nothing', 'nothing')).toBeUndefined();
    expect(history.field('VMI', 'nothing')).toBeUndefined();
  });

  test('both info services are there by path', () => {
    expect(history.rpc('/kubevirt.cmd.info.CmdInfo/Info')?.service).toBe('kubevirt.cmd.info.CmdInfo');
    expect(history.rpc('/kubevirt.notify.info.NotifyInfo/Info')?.service).toBe('kubevirt.notify.info.NotifyInfo');
    expect(history.message('kubevirt.notify.v1.Response')?.fullName).toBe('kubevirt.notify.v1.Response');
    expect(history.message('Response')?.fullName).toBe('kubevirt.cmd.v1.Response');
  });

  test.each([
    ['v1.3.1', 'v1.3.1'],
    ['1.3.1', 'v1.3.1'],
    ['v1.3', 'v1.3.1'],
    ['1.6', 'v1.6.6'],
    ['v1.3.9', undefined],
    ['v2', undefined],
    ['', undefined],
  ])('the release %j is %s', (text, release) => expect(history.resolve(text)).toBe(release));

  test.each([
    ['v1.3.9', 'v1.3.1'],
    ['v1.10.0', 'v1.9.0'],
    ['v1.9.0-rc.1', 'v1.8.4'],
    ['v1.9.0', 'v1.9.0'],
    ['v0.1.0', undefined],
  ])('the nearest release of %s is %s', (text, release) => expect(history.nearest(text)).toBe(release));
});
