import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { CMD_RPC_NAMES, rpcPath } from './cmd/rpcs.ts';
import { NOTIFY_PATHS } from './notify/methods.ts';
import { readBundle } from './testing/bundle.ts';

/** The parts of `history.json` that make up a schema; an element with an end is gone. */
interface History {
  readonly files: readonly {
    readonly file: string;
    readonly package: string;
    readonly syntax: string;
    readonly options: { readonly go_package: string };
    readonly services: readonly Named<{
      readonly rpcs: readonly Named<{ readonly request: string; readonly response: string }>[];
    }>[];
    readonly messages: readonly Named<{ readonly fields: readonly Named<Field>[] }>[];
  }[];
}
type Named<T> = T & { readonly name: string; readonly until: string | null; readonly since: string };
interface Field {
  readonly number: number;
  readonly label: 'singular' | 'repeated' | 'map';
  readonly type: string;
  readonly map: { readonly key: string; readonly value: string } | null;
}

const FILES: Readonly<Record<string, string>> = {
  'pkg/handler-launcher-com/cmd/v1/cmd.proto': 'kubevirt/cmd/v1/cmd.proto',
  'pkg/handler-launcher-com/cmd/info/info.proto': 'kubevirt/cmd/info/info.proto',
  'pkg/handler-launcher-com/notify/v1/notify.proto': 'kubevirt/notify/v1/notify.proto',
  'pkg/handler-launcher-com/notify/info/info.proto': 'kubevirt/notify/info/info.proto',
};

const history = readBundle('wire-history').get('history.json') as History;
const alive = <T extends { readonly until: string | null }>(elements: readonly T[]): readonly T[] =>
  elements.filter(({ until }) => until === null);

/** The statements of a proto file, one per line, without comments and white space. */
function statementsOf(protoFile: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, '../../../proto', protoFile), 'utf8');
  return text
    .replaceAll(/\/\/.*$/gm, '')
    .replaceAll(/\s+/g, ' ')
    .split(/(?<=[;{}])/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/** The same statements as v1.9.0's schema asks for, services first. */
function expectedStatements(file: History['files'][number]): readonly string[] {
  const services = alive(file.services).flatMap((service) => [
    `service ${service.name} {`,
    ...alive(service.rpcs).map((rpc) => `rpc ${rpc.name}(${rpc.request}) returns (${rpc.response});`),
    '}',
  ]);
  const messages = alive(file.messages).flatMap((message) => [
    `message ${message.name} {`,
    ...alive(message.fields).map((field) => `${typeOf(field)} ${field.name} = ${field.number};`),
    '}',
  ]);
  return [
    `syntax = "${file.syntax}";`,
    `package ${file.package};`,
    `option go_package = "${file.options.go_package}";`,
    ...services,
    ...messages,
  ];
}

function typeOf(field: Field): string {
  if (field.map !== null) return `map<${field.map.key}, ${field.map.value}>`;
  return field.label === 'repeated' ? `repeated ${field.type}` : field.type;
}

describe('the schema of v1.9.0', () => {
  test('knows these four files', () => {
    expect(history.files.map(({ file }) => file).sort()).toEqual(Object.keys(FILES).sort());
  });

  test.each(history.files.map((file) => [FILES[file.file] ?? '', file] as const))('%s is the same', (name, file) => {
    expect(statementsOf(name)).toEqual(expectedStatements(file));
  });

  test('every RPC says since which release it exists', () => {
    for (const file of history.files) {
      const text = readFileSync(join(import.meta.dirname, '../../../proto', FILES[file.file] ?? ''), 'utf8');
      for (const rpc of alive(file.services).flatMap((service) => alive(service.rpcs))) {
        const comment = new RegExp(String.raw`((?: *//.*\n)+) *rpc ${rpc.name}\(`).exec(text)?.[1] ?? '';
        expect(comment.replaceAll(/\s+(\/\/\s+)?/g, ' '), rpc.name).toContain(rpc.since.replace(/\.0$/, ''));
      }
    }
  });

  test('the paths that client and server use are those of the services', () => {
    const paths = history.files.flatMap((file) =>
      alive(file.services).flatMap((service) =>
        alive(service.rpcs).map((rpc) => `/${file.package}.${service.name}/${rpc.name}`),
      ),
    );
    const ours = [...CMD_RPC_NAMES.map(rpcPath), ...Object.values(NOTIFY_PATHS), '/kubevirt.cmd.info.CmdInfo/Info'];
    expect(ours.sort()).toEqual(paths.sort());
  });
});
