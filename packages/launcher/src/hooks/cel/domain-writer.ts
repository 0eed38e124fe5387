import { isCelUint } from '@bufbuild/cel';
import type { XmlElement } from '@virtwire/vm-model';
import { parseXmlTree, renderXmlTree, xmlChild, xmlElement } from '@virtwire/vm-model';
import { textOf } from '../../errors.ts';
import { CHARDEV_TYPE, splitName } from './domain-reader.ts';
import type { HolderUnion, SelfUnion } from './domain-unions.ts';
import { HEX_DIGITS, HOLDER_UNIONS, NAMESPACES, SELF_UNIONS } from './domain-unions.ts';
import { CelError } from './report.ts';
import type { Field, Schema, StructType } from './schema.ts';
import type { CelValue } from './values.ts';
import { isList, StructValue } from './values.ts';

/**
 * Writes a domain as libvirtxml does.
 *
 * @throws {CelError} when fields contradict each other.
 * @source libvirt.org/go/libvirtxml domain.go
 */
export function writeDomain(schema: Schema, domain: StructValue): string {
  const root = xmlElement('domain');
  new Writer(schema, root).write(domain, root, '');
  return renderXmlTree(root, { indent: '  ' });
}

class Writer {
  readonly #schema: Schema;
  readonly #root: XmlElement;

  constructor(schema: Schema, root: XmlElement) {
    this.#schema = schema;
    this.#root = root;
  }

  /** Puts the fields of a struct into an element; those of one of several stand in the same element. */
  write(value: StructValue, element: XmlElement, prefix: string): void {
    const { type, fields } = value;
    const holder = HOLDER_UNIONS[type.name];
    const union = SELF_UNIONS[type.name];
    if (holder !== undefined) this.#writeKindOfHeld(value, holder, element);
    const variant = union && writeKind(value, union, element);
    this.#writeOddities(value, element);
    if (variant !== undefined) this.#writeInto(fields.get(variant), element, prefix);
    const given = type.name === 'DomainDeviceList' ? this.#withIommus(value) : value;
    for (const field of type.fields) {
      if (holder?.field === field.name) this.#writeHeld(given.fields.get(field.name), holder, field, element);
      else this.#writeField(type, field, given.fields.get(field.name), element, prefix);
    }
  }

  #writeInto(value: CelValue | undefined, element: XmlElement, prefix: string): void {
    if (value instanceof StructValue) this.write(value, element, prefix);
  }

  #writeKindOfHeld({ type, fields }: StructValue, holder: HolderUnion, element: XmlElement): void {
    const held = fields.get(holder.field);
    if (type.name === 'DomainSmartcard' && held !== undefined) element.attributes.set('mode', 'passthrough');
    const kind = held instanceof StructValue ? kindOf(held, holder.of) : undefined;
    if (kind !== undefined && kind !== '' && !holder.isField) element.attributes.set(holder.attribute, kind);
  }

  #writeHeld(held: CelValue | undefined, { of }: HolderUnion, field: Field, element: XmlElement): void {
    if (!(held instanceof StructValue)) return;
    const variant = of[kindOf(held, of) ?? ''];
    if (variant === 'UDP' && held.type.name === CHARDEV_TYPE) {
      element.children.push(...udpElements(held.fields.get('UDP')));
      return;
    }
    const child = xmlElement(field.place);
    this.write(held, child, '');
    if (variant !== undefined) this.#writeInto(held.fields.get(variant), child, '');
    const isTold = child.children.length > 0 || [...child.attributes.values()].some((text) => text !== '');
    if (isTold) element.children.push(child);
  }

  #writeOddities({ type, fields }: StructValue, element: XmlElement): void {
    switch (type.name) {
      case 'DomainSmartcard':
        if (fields.has('HostCerts') && !element.attributes.has('mode')) {
          element.attributes.set('mode', 'host-certificates');
        }
        break;
      case 'DomainInterfaceSourceHostdev':
        for (const [name, kind] of [['PCI', 'pci'] as const, ['USB', 'usb'] as const]) {
          this.#writeInto(fields.get(name), element, '');
          if (fields.has(name)) xmlChild(element, 'address')?.attributes.set('type', kind);
        }
        break;
      case 'DomainInterfaceSourceVHostUser': {
        const chardev = fields.get('Chardev');
        const dev = fields.get('Dev');
        if (chardev instanceof StructValue) this.#writeChardev(chardev, element);
        else if (typeof dev === 'string') element.attributes.set('dev', dev);
        break;
      }
      default:
        break;
    }
  }

  #writeChardev(chardev: StructValue, element: XmlElement): void {
    const of = HOLDER_UNIONS.DomainSerial?.of ?? {};
    const kind = kindOf(chardev, of);
    if (kind === undefined) return;
    element.attributes.set('type', kind);
    this.#writeInto(chardev.fields.get(of[kind] ?? ''), element, '');
  }

  /** The old field for the only IOMMU, and the list. */
  #withIommus(devices: StructValue): StructValue {
    const one = devices.fields.get('IOMMU');
    const all = devices.fields.get('IOMMUs') ?? [];
    if (!(one instanceof StructValue) || !isList(all)) return devices;
    const [first] = all;
    if (first === undefined) return new StructValue(devices.type, new Map(devices.fields).set('IOMMUs', [one]));
    if (first instanceof StructValue && this.#text(first) === this.#text(one)) return devices;
    throw new CelError('IOMMU field must match first element in IOMMUs list');
  }

  #text(value: StructValue): string {
    const element = xmlElement('iommu');
    this.write(value, element, '');
    return renderXmlTree(element);
  }

  #writeField(
    owner: StructType,
    field: Field,
    value: CelValue | undefined,
    element: XmlElement,
    outerPrefix: string,
  ): void {
    const { place } = field;
    if (place === '-') return;
    if (field.isEmbedded) {
      this.#writeInto(value, element, outerPrefix);
      return;
    }
    const shown = value ?? this.#shownZero(field);
    if (shown === undefined) return;
    if (place === 'xml()') {
      const inside = parseInside(shown as string);
      element.children.push(...inside.children);
      element.text = inside.text;
    } else if (place === 'text()') {
      element.text = formatScalar(owner, field, shown);
    } else if (place.startsWith('@')) {
      element.attributes.set(place.slice(1), formatScalar(owner, field, shown));
    } else {
      const [ownPrefix, local] = splitName(place);
      const prefix = ownPrefix === '' ? outerPrefix : ownPrefix;
      if (ownPrefix !== '') this.#root.attributes.set(`xmlns:${prefix}`, NAMESPACES[prefix] ?? '');
      for (const one of isList(shown) ? shown : [shown]) {
        const child = xmlElement(prefix === '' ? local : `${prefix}:${local}`);
        if (one instanceof StructValue) this.write(one, child, prefix);
        else child.text = formatScalar(owner, field, one);
        element.children.push(child);
      }
    }
  }

  /** What Go prints for a field that is not set and that it does not leave out. */
  #shownZero({ type, isPointer, omitsZero, place }: Field): CelValue | undefined {
    if (isPointer) return undefined;
    if (type.kind === 'struct') return new StructValue(this.#schema.struct(type.name), new Map());
    if (omitsZero || place === 'xml()') return undefined;
    switch (type.kind) {
      case 'string':
        return '';
      case 'int':
      case 'uint':
        return 0n;
      default:
        return undefined;
    }
  }
}

/** The attribute's value for the first variant that is set. */
function kindOf({ fields }: StructValue, of: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(of).find((kind) => fields.has(of[kind] ?? ''));
}

/** Writes which of several a value is, and returns the field of it. */
function writeKind(value: StructValue, union: SelfUnion, element: XmlElement): string | undefined {
  const { attributes, of, none, isField } = union;
  if (isField === true) {
    const type = value.fields.get('Type');
    return typeof type === 'string' ? of[type] : undefined;
  }
  const kind = kindOf(value, of);
  const values = (kind ?? none)?.split('/') ?? [];
  for (const [index, attribute] of attributes.entries()) {
    const text = values[index] ?? '';
    if (text !== '') element.attributes.set(attribute, text);
  }
  return kind === undefined ? undefined : of[kind];
}

function udpElements(udp: CelValue | undefined): readonly XmlElement[] {
  const fields = udp instanceof StructValue ? udp.fields : new Map<string, CelValue>();
  return ['Bind', 'Connect'].flatMap((end) => {
    const attributes: Record<string, string> = { mode: end.toLowerCase() };
    for (const [attribute, name] of [['host', 'Host'] as const, ['service', 'Service'] as const]) {
      const value = fields.get(`${end}${name}`);
      if (typeof value === 'string') attributes[attribute] = value;
    }
    return Object.keys(attributes).length > 1 ? [xmlElement('source', attributes)] : [];
  });
}

function parseInside(xml: string): XmlElement {
  try {
    return parseXmlTree(`<x>${xml}</x>`);
  } catch (caught) {
    throw new CelError(`XML of metadata: ${textOf(caught)}`, { cause: caught });
  }
}

function formatScalar(owner: StructType, field: Field, value: CelValue): string {
  const number = isCelUint(value) ? value.value : value;
  const digits = HEX_DIGITS[`${owner.name}.${field.name}`];
  if (typeof number !== 'bigint')
    return typeof number === 'string' || typeof number === 'boolean' ? String(number) : '';
  return digits === undefined ? String(number) : `0x${number.toString(16).padStart(digits, '0')}`;
}
