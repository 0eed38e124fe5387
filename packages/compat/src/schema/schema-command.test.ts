import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { openHistory } from '@virtwire/shared-proto/history';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { rulesCommand } from './rules-command.ts';
import { schemaCommand } from './schema-command.ts';

const history = openHistory();
let directory = '';
let lines: string[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'virtwire-schema-'));
  lines = [];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const io = { line: (text: string) => void lines.push(text) };

/** Writes the proto files of a release as KubeVirt's tree has them. */
function tree(release: string): string {
  for (const [path, text] of history.protoTexts(release)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}
const run = async (...argv: string[]): Promise<{ code: number; text: string }> => {
  const code = await schemaCommand(argv, io);
  return { code, text: lines.join('\n') };
};

describe('compat schema', () => {
  test('says that nothing breaks, and with which releases', async () => {
    expect(await run(tree('v1.9.0'))).toEqual({ code: 0, text: 'no break with v0.59.0 to v1.9.0' });
  });

  test('finds nothing in the proto files that this repository generates from', async () => {
    const proto = join(import.meta.dirname, '../../../../proto');
    expect(await run(proto)).toEqual({ code: 0, text: 'no break with v0.59.0 to v1.9.0' });
  });

  test('reads a tree with files of others, and imports of well-known types', async () => {
    const cmd = join(tree('v1.9.0'), 'pkg/handler-launcher-com/cmd/v1/cmd.proto');
    const imported = '\nimport "google/protobuf/empty.proto";\noption go_package';
    const added = 'message New { google.protobuf.Empty nothing = 1; }\n';
    writeFileSync(cmd, `${readFileSync(cmd, 'utf8').replace('\noption go_package', imported)}${added}`);
    mkdirSync(join(directory, 'vendor'));
    writeFileSync(
      join(directory, 'vendor/gogo.proto'),
      'syntax = "proto2"; package gogo; import "nowhere.proto"; message A { optional Nowhere b = 1; }',
    );
    expect((await run(directory)).code).toBe(0);
  });

  test('takes a descriptor set, and releases by tag and line', async () => {
    const file = join(directory, 'set.binpb');
    writeFileSync(file, history.descriptorSet('v1.9.0'));
    expect(await run('--against', 'v1.3,1.5.0', file)).toEqual({
      code: 0,
      text: 'no break with v1.3.0 to v1.3.1, v1.5.0',
    });
  });

  test('a single proto file breaks nothing of the services in other files', async () => {
    const cmd = join(tree('v1.9.0'), 'pkg/handler-launcher-com/cmd/v1/cmd.proto');
    const { code, text } = await run(cmd);
    expect(text).toBe('no break with v0.59.0 to v1.9.0\nin one file, compared alone: kubevirt.cmd.v1.Cmd');
    expect(code).toBe(0);
    writeFileSync(cmd, readFileSync(cmd, 'utf8').replace(/ *rpc Ping.*\n/, ''));
    expect((await run(cmd)).text).toContain('Cmd/Ping: handlers call it and get UNIMPLEMENTED');
  });

  test('a tree without the notify protocol breaks launchers', async () => {
    rmSync(join(tree('v1.9.0'), 'pkg/handler-launcher-com/notify'), { recursive: true });
    const { code, text } = await run(directory);
    expect(text).toContain('Notify/HandleDomainEvent: launchers call it and get UNIMPLEMENTED');
    expect(code).toBe(1);
  });

  test('says in words what breaks, for whom, and ends with 1', async () => {
    const { code, text } = await run('--against', 'all', tree('v0.37.0'));
    expect(code).toBe(1);
    expect(text).toContain('Cmd/SignalTargetPodCleanup: handlers call it and get UNIMPLEMENTED');
    expect(text).toContain('breaks handlers of v0.36.3 to v0.36.5, v0.41.0 to v1.9.0  [RPC_NO_DELETE]');
  });

  test('gives the same as data', async () => {
    const { code, text } = await run('--json', '--against', 'v0.36.5', tree('v0.37.0'));
    expect(code).toBe(1);
    expect(JSON.parse(text)).toMatchObject({
      compared: ['v0.36.5'],
      breaks: [{ rule: 'RPC_NO_DELETE', where: 'Cmd/SignalTargetPodCleanup', whom: 'handlers', releases: ['v0.36.5'] }],
    });
  });

  test.each<[string, () => string[], string]>([
    ['no path', () => [], 'BadOption'],
    ['a path that is not there', () => [join(directory, 'nothing')], 'BadOption'],
    ['a folder without proto files', () => [directory], 'BadOption'],
    ['no release at all', () => ['--against', ',', tree('v1.9.0')], 'BadOption'],
    [
      'an empty file',
      () => {
        writeFileSync(join(directory, 'empty.binpb'), '');
        return [join(directory, 'empty.binpb')];
      },
      'BadOption',
    ],
    [
      'a protocol of somebody else',
      () => {
        writeFileSync(
          join(directory, 'other.proto'),
          'syntax = "proto3"; package a; message M {} service S { rpc R(M) returns (M); }',
        );
        return [directory];
      },
      'BadOption',
    ],
    ['a release that never was', () => ['--against', 'v7.7.7', tree('v1.9.0')], 'BadOption'],
    [
      'a proto file that is none',
      () => {
        writeFileSync(join(directory, 'bad.proto'), 'message {');
        return [directory];
      },
      'DecodeFailed',
    ],
    [
      'a descriptor set that is none',
      () => {
        writeFileSync(join(directory, 'bad.binpb'), 'nonsense');
        return [join(directory, 'bad.binpb')];
      },
      'BadOption',
    ],
    [
      'a message that is nowhere',
      () => {
        writeFileSync(join(directory, 'bad.proto'), 'syntax = "proto3"; message A { B b = 1; }');
        return [directory];
      },
      'DecodeFailed',
    ],
  ])('refuses %s', async (_title, argv, code) => {
    await expect(schemaCommand(argv(), io)).rejects.toMatchObject({ code });
  });
});

test('compat rules prints every rule, and as data', async () => {
  expect(await rulesCommand([], io)).toBe(0);
  expect(lines.join('\n')).toContain('GetVMStats  (launchers from v1.9.0 on)');
  lines = [];
  await rulesCommand(['--json'], io);
  expect(JSON.parse(lines.join('\n'))).toHaveProperty('rpcs');
});
