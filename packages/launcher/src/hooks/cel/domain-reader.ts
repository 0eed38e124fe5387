import { celUint } from '@bufbuild/cel';
import type { XmlElement } from '@virtwire/vm-model';
import { parseXmlTree, renderXmlTree, xmlChild, xmlElement } from '@virtwire/vm-model';
import type { HolderUnion, SelfUnion } from './domain-unions.ts';
import { HEX_DIGITS, HOLDER_UNIONS, NAMESPACES, SELF_UNIONS } from './domain-unions.ts';
import { CelError } from './report.ts';
import type { Field, Schema, StructType } from './schema.ts';
import { DOMAIN_TYPE } from './schema.ts';
import type { CelValue } from './values.ts';
import { StructValue } from './values.ts';

type Fields = Map<string, CelValue>;

/** Its `UDP` is the only value that two elements make. */
export const CHARDEV_TYPE = 'DomainChardevSource';

/**
 * Reads a domain as libvirtxml does: what it has no field for is left out.
 *
 * @throws {CelError} when it is no domain, a number is none, or an element is of a type that libvirtxml does not know.
 * @throws {VmModelError} `InvalidXml`
 * @source libvirt.org/go/libvirtxml domain.go
 */
export function readDomain(schema: Schema, xml: string): StructValue {
  const root = parseXmlTree(xml);
  if (root.name !== 'domain') throw new CelError(`expected element type <domain> but have <${root.name}>`);
  return new Reader(schema, root).read(schema.struct(DOMAIN_TYPE), root);
}

class Reader {
  readonly #schema: Schema;
  readonly #root: XmlElement;

  constructor(schema: Schema, root: XmlElement) {
    this.#schema = schema;
    this.#root = root;
  }

  read(type: StructType, element: XmlElement, variant?: string): StructValue {
    const fields: Fields = new Map();
    for (const field of type.fields) {
      const value = this.#field(type, field, element);
      if (value !== undefined) fields.set(field.name, value);
    }
    const union = SELF_UNIONS[type.name];
    const chosen = variant ?? (union && selfVariant(union, element));
    if (chosen !== undefined) this.#readVariant(type, chosen, element, fields);
    const holder = HOLDER_UNIONS[type.name];
    if (holder !== undefined) this.#readHeld(type, holder, element, fields);
    this.#readOddities(type, element, fields);
    return new StructValue(type, fields);
  }

  #readVariant(type: StructType, name: string, element: XmlElement, fields: Fields): void {
    const inner = type.find(name)?.[0]?.type;
    if (inner?.kind === 'struct') fields.set(name, this.read(this.#schema.struct(inner.name), element));
  }

  #readHeld(type: StructType, holder: HolderUnion, element: XmlElement, fields: Fields): void {
    const inner = type.find(holder.field)?.[0];
    if (inner?.type.kind !== 'struct') return;
    const written = element.attributes.get(holder.attribute);
    const child = xmlChild(element, inner.place);
    const mode = type.name === 'DomainSmartcard' ? element.attributes.get('mode') : undefined;
    if (mode !== undefined && mode !== 'passthrough') return;
    if (child === undefined && mode === undefined && !holder.isAlways) return;
    const variant = holder.of[written ?? holder.otherwise ?? ''];
    if (variant === undefined && child !== undefined && holder.isField !== true) {
      throw new CelError(`reading ${type.name}: unknown ${holder.attribute} "${written ?? ''}"`);
    }
    const value = this.read(this.#schema.struct(inner.type.name), child ?? xmlElement(inner.place), variant);
    if (variant === 'UDP' && inner.type.name === CHARDEV_TYPE) {
      fields.set(holder.field, this.#udpSource(value, element));
    } else if (type.name === 'DomainDiskBackingStore' && written === undefined && child === undefined) {
      fields.set(holder.field, new StructValue(value.type, new Map()));
    } else {
      fields.set(holder.field, value);
    }
  }

  #udpSource(source: StructValue, holder: XmlElement): StructValue {
    const udp: Fields = new Map();
    for (const { name, attributes } of holder.children) {
      if (name !== 'source') continue;
      const end = attributes.get('mode') === 'connect' ? 'Connect' : 'Bind';
      for (const [attribute, field] of [['host', 'Host'] as const, ['service', 'Service'] as const]) {
        const value = attributes.get(attribute) ?? '';
        if (value !== '') udp.set(`${end}${field}`, value);
      }
    }
    const type = this.#schema.struct('DomainChardevSourceUDP');
    return new StructValue(source.type, new Map(source.fields).set('UDP', new StructValue(type, udp)));
  }

  #readOddities(type: StructType, element: XmlElement, fields: Fields): void {
    switch (type.name) {
      case 'DomainDeviceList': {
        const [first] = (fields.get('IOMMUs') ?? []) as readonly CelValue[];
        if (first !== undefined) fields.set('IOMMU', first);
        break;
      }
      case 'DomainNVRam':
        if (fields.has('Source')) fields.delete('NVRam');
        break;
      case 'DomainInterfaceSourceHostdev': {
        const bus = xmlChild(element, 'address')?.attributes.get('type');
        if (bus === 'pci' || bus === 'usb') this.#readVariant(type, bus === 'pci' ? 'PCI' : 'USB', element, fields);
        break;
      }
      case 'DomainInterfaceSourceVHostUser': {
        const dev = element.attributes.get('dev');
        if (dev !== undefined) fields.set('Dev', dev);
        else fields.set('Chardev', this.#vhostUserSource(element));
        break;
      }
      default:
        break;
    }
  }

  #vhostUserSource(element: XmlElement): StructValue {
    const variant = HOLDER_UNIONS.DomainSerial?.of[element.attributes.get('type') ?? 'unix'];
    return this.read(this.#schema.struct(CHARDEV_TYPE), element, variant);
  }

  #field(owner: StructType, field: Field, element: XmlElement): CelValue | undefined {
    const { place, type } = field;
    if (place === '-' || HOLDER_UNIONS[owner.name]?.field === field.name) return undefined;
    if (field.isEmbedded && type.kind === 'struct') {
      const inner = this.read(this.#schema.struct(type.name), element);
      return inner.fields.size === 0 ? undefined : inner;
    }
    if (place.startsWith('@')) return this.#scalar(owner, field, element.attributes.get(place.slice(1)));
    if (place === 'text()') return this.#scalar(owner, field, element.text);
    if (place === 'xml()') return textInside(element);
    const children = element.children.filter((child) => this.#isAt(child, place));
    if (type.kind === 'list')
      return children.length === 0 ? undefined : children.map((c) => this.#item(owner, field, c));
    // As in Go, the last of several wins.
    const child = children.at(-1);
    if (child === undefined || type.kind !== 'struct') return this.#scalar(owner, field, child?.text);
    const value = this.read(this.#schema.struct(type.name), child);
    return value.fields.size === 0 && !field.isPointer ? undefined : value;
  }

  #item(owner: StructType, field: Field, element: XmlElement): CelValue {
    const of = field.type.kind === 'list' ? field.type.of : field.type;
    if (of.kind === 'struct') return this.read(this.#schema.struct(of.name), element);
    return this.#scalar(owner, { ...field, type: of, isPointer: true }, element.text) ?? '';
  }

  /** Elements go by their local names, but those of hypervisors by their namespace too. */
  #isAt({ name, attributes }: XmlElement, place: string): boolean {
    const [prefix, local] = splitName(name);
    const [wantedPrefix, wanted] = splitName(place);
    if (local !== wanted) return false;
    if (wantedPrefix === '') return true;
    const key = prefix === '' ? 'xmlns' : `xmlns:${prefix}`;
    return (attributes.get(key) ?? this.#root.attributes.get(key)) === NAMESPACES[wantedPrefix];
  }

  /** A value, without the zero value of what is no pointer. */
  #scalar(owner: StructType, field: Field, text: string | undefined): CelValue | undefined {
    if (text === undefined) return undefined;
    const { type, isPointer } = field;
    if (type.kind === 'bool') return text.trim() === 'true' ? true : isPointer ? false : undefined;
    if (type.kind !== 'int' && type.kind !== 'uint') return text === '' && !isPointer ? undefined : text;
    const number = readNumber(`${owner.name}.${field.name}`, text);
    if (number === undefined || (number === 0n && !isPointer)) return undefined;
    return type.kind === 'uint' ? celUint(number) : number;
  }
}

/** `prefix:local`, or just the second. */
export function splitName(name: string): readonly [prefix: string, local: string] {
  const colon = name.indexOf(':');
  return [name.slice(0, Math.max(colon, 0)), name.slice(colon + 1)];
}

function textInside(element: XmlElement): string {
  return element.children.length === 0 ? element.text : element.children.map((child) => renderXmlTree(child)).join('');
}

function selfVariant({ attributes, defaults, of, otherwise }: SelfUnion, element: XmlElement): string | undefined {
  const values = attributes.map((attribute) => element.attributes.get(attribute) ?? defaults?.[attribute]);
  if (values.every((value) => value === undefined)) return otherwise === undefined ? undefined : of[otherwise];
  return of[values.map((value) => value ?? '').join('/')];
}

function readNumber(field: string, text: string): bigint | undefined {
  const digits = text.trim();
  // What libvirt writes for any, and libvirtxml for an empty element.
  if (digits === '' || (digits === '-1' && field.startsWith('DomainRedirFilterUSB.'))) return undefined;
  const isHex = HEX_DIGITS[field] === 1;
  try {
    return BigInt(isHex && !digits.startsWith('0x') ? `0x${digits}` : digits);
  } catch {
    throw new CelError(`reading ${field}: "${text}" is no number`);
  }
}
