import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { create } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';

interface Presence {
  readonly presence: readonly { readonly since: string; readonly until: string | null }[];
}
interface HistoryField extends Presence {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly map: { readonly key: string; readonly value: string } | null;
}
interface HistoryFile {
  readonly file: string;
  readonly package: string;
  readonly messages: readonly (Presence & { readonly name: string; readonly fields: readonly HistoryField[] })[];
  readonly services: readonly {
    readonly name: string;
    readonly rpcs: readonly (Presence & {
      readonly name: string;
      readonly variants: readonly (Presence & { readonly request: string; readonly response: string })[];
    })[];
  }[];
}

export function releaseDescriptors(release: string): FileDescriptorSet {
  const text = gunzipSync(readFileSync(join(import.meta.dirname, '../../../../../testdata/wire-history.ndjson.gz')));
  const history = (JSON.parse(text.toString('utf8')) as { json: { releases: string[]; files: HistoryFile[] } }).json;
  const at = history.releases.indexOf(release);
  const isIn = (e: Presence): boolean =>
    e.presence.some(
      (p) => history.releases.indexOf(p.since) <= at && (p.until === null || at < history.releases.indexOf(p.until)),
    );
  const typeOf = (type: string, pkg: string): Partial<FieldDescriptorProto> => {
    const scalar = (FieldDescriptorProto_Type as unknown as Record<string, number>)[type.toUpperCase()];
    return scalar === undefined ? { type: 11, typeName: `.${pkg}.${type}` } : { type: scalar };
  };
  const field = (
    f: HistoryField,
    pkg: string,
    message: string,
  ): [FieldDescriptorProto, DescriptorProto | undefined] => {
    const label = f.label === 'singular' ? FieldDescriptorProto_Label.OPTIONAL : FieldDescriptorProto_Label.REPEATED;
    const base = { name: f.name, number: f.number, label };
    if (f.map === null) {
      return [create(FieldDescriptorProtoSchema, { ...base, ...typeOf(f.type, pkg) } as never), undefined];
    }
    const entryName = `${f.name[0]?.toUpperCase() ?? ''}${f.name.slice(1)}Entry`;
    const entry = create(DescriptorProtoSchema, {
      name: entryName,
      options: { mapEntry: true },
      field: [
        { name: 'key', number: 1, label: 1, ...typeOf(f.map.key, pkg) } as never,
        { name: 'value', number: 2, label: 1, ...typeOf(f.map.value, pkg) } as never,
      ],
    });
    const typeName = `.${pkg}.${message}.${entryName}`;
    return [create(FieldDescriptorProtoSchema, { ...base, type: 11, typeName }), entry];
  };
  return create(FileDescriptorSetSchema, {
    file: history.files.map((f) =>
      create(FileDescriptorProtoSchema, {
        name: f.file,
        package: f.package,
        syntax: 'proto3',
        messageType: f.messages.filter(isIn).map((m) => {
          const fields = m.fields.filter(isIn).map((x) => field(x, f.package, m.name));
          return create(DescriptorProtoSchema, {
            name: m.name,
            field: fields.map(([x]) => x),
            nestedType: fields.flatMap(([, entry]) => (entry === undefined ? [] : [entry])),
          });
        }),
        service: f.services.map((s) => ({
          name: s.name,
          method: s.rpcs.filter(isIn).map((r) => {
            const v = r.variants.find(isIn);
            return {
              name: r.name,
              inputType: `.${f.package}.${v?.request ?? ''}`,
              outputType: `.${f.package}.${v?.response ?? ''}`,
            };
          }),
        })),
      } as never),
    ),
  });
}
