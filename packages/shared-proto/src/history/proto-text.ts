import type { FieldType, FileHistory } from './types.ts';

/** Renders the proto file of one release, without comments: a file that `filesOf` gave. */
export function renderProto(file: FileHistory): string {
  const service = file.service.slice(file.package.length + 1);
  const rpcs = file.rpcs.map(({ name, shapes: [shape] }) => {
    return `  rpc ${name}(${shape?.request ?? ''}) returns (${shape?.response ?? ''});`;
  });
  const messages = file.messages.map(({ name, fields }) => {
    const lines = fields.map((field) => `  ${renderType(field.type)} ${field.name} = ${field.number};\n`);
    return `message ${name} {\n${lines.join('')}}\n`;
  });
  return [
    'syntax = "proto3";\n',
    `package ${file.package};\n`,
    `option go_package = "${file.goPackage}";\n`,
    `service ${service} {\n${rpcs.join('\n')}\n}\n`,
    ...messages,
  ].join('\n');
}

/** A field's type as a proto file writes it. */
function renderType(type: FieldType): string {
  if (type.kind === 'map') return `map<${type.key}, ${type.type}>`;
  return type.kind === 'repeated' ? `repeated ${type.type}` : type.type;
}
