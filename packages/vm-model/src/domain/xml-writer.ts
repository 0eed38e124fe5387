import { VmModelError } from '../errors.ts';
import type { DomainSpec } from '../gen/domain-types.gen.ts';
import { type FieldPlan, type TypePlan, planOf } from './plan.ts';
import { formatGoTime } from '../time.ts';
import { escapeXml } from './xml-escape.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How domain XML is laid out. */
export interface XmlLayout {
  /** Text per nesting level; empty or missing: everything on one line. */
  readonly indent?: string;
}

const ZERO: Fields = {};
const ALIAS_PREFIX = 'ua-';

/**
 * Prints a domain as Go's encoding/xml prints KubeVirt's `api.DomainSpec`: same order of attributes and elements, no
 * self-closing tags, no XML header.
 *
 * @throws {VmModelError} `InvalidValue` when a value does not fit its field.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go
 */
export function renderDomainXml(spec: DomainSpec, layout: XmlLayout = {}): string {
  const printer = new Printer(layout.indent ?? '');
  printer.element('domain', undefined, planOf('DomainSpec'), spec as unknown as Fields);
  return printer.text;
}

/** Prints one device or other part of a domain on its own, as libvirt's attach, detach and update calls take it. */
export function renderDomainElementXml(type: string, element: string, value: object, layout: XmlLayout = {}): string {
  const printer = new Printer(layout.indent ?? '');
  printer.element(element, undefined, planOf(type), value as Fields);
  return printer.text;
}

class Printer {
  text = '';
  readonly #indent: string;
  #depth = 0;
  /** Whether the open element has got a child element, so that its end tag stands on its own line. */
  #hasChildren = false;

  constructor(indent: string) {
    this.#indent = indent;
  }

  element(name: string, namespace: string | undefined, plan: TypePlan, value: Fields): void {
    let tag = name;
    if (namespace !== undefined) tag += ` xmlns="${escapeXml(namespace)}"`;
    for (const field of plan.attributes) {
      const text = scalarText(plan, field, value[field.key], value);
      if (text !== undefined && field.xml.kind === 'attribute') tag += ` ${field.xml.name}="${escapeXml(text)}"`;
    }
    this.#open(tag);
    for (const field of plan.content) this.#content(plan, field, value[field.key]);
    this.#close(name);
  }

  #content(plan: TypePlan, field: FieldPlan, value: unknown): void {
    if (field.xml.kind === 'text') {
      this.text += escapeXml(scalarText(plan, field, value, ZERO) ?? '');
      return;
    }
    if (field.xml.kind !== 'element') return;
    const { name, parents } = field.xml;
    for (const parent of parents) this.#open(parent);
    for (const item of itemsOf(field, value)) {
      if (field.kind === 'struct') {
        this.element(name, field.xmlNamespace, planOf(field.type), objectOf(field, item));
      } else {
        this.#leaf(name, scalarText(plan, field, item, ZERO));
      }
    }
    for (const parent of parents.toReversed()) this.#close(parent);
  }

  #leaf(name: string, text: string | undefined): void {
    if (text === undefined) return;
    this.#open(name);
    this.text += escapeXml(text);
    this.#close(name);
  }

  #open(tag: string): void {
    if (this.#indent !== '' && this.text !== '') this.text += `\n${this.#indent.repeat(this.#depth)}`;
    this.text += `<${tag}>`;
    this.#depth++;
    this.#hasChildren = false;
  }

  #close(name: string): void {
    this.#depth--;
    if (this.#indent !== '' && this.#hasChildren) this.text += `\n${this.#indent.repeat(this.#depth)}`;
    this.text += `</${name}>`;
    this.#hasChildren = true;
  }
}

/** The elements that a field makes: none for an unset pointer or list, one for a value. */
function itemsOf(field: FieldPlan, value: unknown): readonly unknown[] {
  if (field.isList) {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) throw mismatch(field, value);
    return value;
  }
  if (value !== undefined && value !== null) return [value];
  if (field.kind !== 'struct') return [undefined];
  return field.isPointer ? [] : [ZERO];
}

function objectOf(field: FieldPlan, item: unknown): Fields {
  if (item === undefined || item === null) return ZERO;
  if (typeof item !== 'object') throw mismatch(field, item);
  return item as Fields;
}

/** @returns undefined when nothing is written. */
function scalarText(plan: TypePlan, field: FieldPlan, value: unknown, owner: Fields): string | undefined {
  if (plan.name === 'Alias' && owner['UserDefined'] === true) return ALIAS_PREFIX + valueText(field, value ?? '');
  if (value === undefined || value === null) {
    if (field.isPointer || !field.xmlAlways) return undefined;
    return zeroText(field);
  }
  const text = valueText(field, value);
  return !field.isPointer && !field.xmlAlways && text === zeroText(field) ? undefined : text;
}

function zeroText(field: FieldPlan): string {
  if (field.kind === 'string') return '';
  return field.kind === 'bool' ? 'false' : '0';
}

function valueText(field: FieldPlan, value: unknown): string {
  if (field.kind === 'string' && typeof value === 'string') return value;
  if (field.kind === 'Time' && typeof value === 'string') return formatGoTime(value);
  if (field.kind === 'bool' && typeof value === 'boolean') return String(value);
  const isNumber = typeof value === 'bigint' || Number.isSafeInteger(value);
  if (!isNumber || field.kind === 'string' || field.kind === 'Time' || field.kind === 'bool') {
    throw mismatch(field, value);
  }
  return String(value);
}

function mismatch(field: FieldPlan, value: unknown): VmModelError {
  return new VmModelError('InvalidValue', `${field.key} of type ${field.goType} cannot hold ${String(value)}`);
}
