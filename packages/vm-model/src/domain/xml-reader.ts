import { SaxesParser, type SaxesTagPlain } from 'saxes';
import { VmModelError } from '../errors.ts';
import type { DomainSpec } from '../gen/domain-types.gen.ts';
import { formatGoTime } from '../time.ts';
import { goXmlError } from './go-xml-error.ts';
import { parseInteger } from './integers.ts';
import { type FieldPlan, type TypePlan, planOf } from './plan.ts';
import { fillDomainSpec } from './zero.ts';

type Fields = Record<string, unknown>;

/** An element that is open; what it fills depends on `kind`. */
type Frame =
  | {
      readonly kind: 'struct';
      readonly plan: TypePlan;
      readonly target: Fields;
      readonly forget?: Forget;
      text: string;
    }
  | { readonly kind: 'scalar'; readonly field: FieldPlan; readonly target: Fields; text: string }
  | { readonly kind: 'path'; readonly fields: readonly FieldPlan[]; readonly target: Fields; readonly depth: number }
  | { readonly kind: 'skip' };

/** Where a plain struct hangs: it goes again when nothing was in it, as in the whole sparse form. */
interface Forget {
  readonly owner: Fields;
  readonly key: string;
}

const ALIAS_PREFIX = 'ua-';
/** As in Go's decoder. */
const MAX_DEPTH = 10_000;
const SKIP: Frame = { kind: 'skip' };

/**
 * Reads a domain XML of libvirt as Go's encoding/xml reads it into KubeVirt's `api.DomainSpec`: unknown elements and
 * attributes are dropped, a repeated element fills the same object again, the qemu command line is lost.
 *
 * The result is sparse, as that of `parseDomainJson`.
 *
 * @throws {VmModelError} `InvalidXml` in Go's words for what Go refuses; entities of a document type are not expanded.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go
 */
export function parseDomainXml(xml: string): DomainSpec {
  return fillDomainSpec(new Reader('DomainSpec', 'domain').read(xml));
}

/** Reads one device or other part of a domain that stands on its own. */
export function parseDomainElementXml(type: string, element: string, xml: string): object {
  return new Reader(type, element).read(xml);
}

class Reader {
  readonly #parser = new SaxesParser({ xmlns: false, position: true });
  readonly #stack: Frame[] = [];
  /** Default and prefixed namespaces of the open elements, innermost last; empty for elements that declare none. */
  readonly #scopes: (Readonly<Record<string, string>> | undefined)[] = [];
  readonly #root: Fields = {};
  readonly #plan: TypePlan;
  readonly #rootName: string;

  constructor(type: string, rootName: string) {
    this.#plan = planOf(type);
    this.#rootName = rootName;
  }

  read(xml: string): Fields {
    this.#parser.on('error', (error) => {
      throw this.#syntaxError(xml, error.message.replace(/^(\d+:)*\d+: /, ''));
    });
    this.#parser.on('opentag', (tag) => {
      this.#open(tag);
    });
    this.#parser.on('closetag', () => {
      this.#close();
    });
    const text = (chunk: string): void => {
      const frame = this.#stack.at(-1);
      if (frame?.kind === 'struct' || frame?.kind === 'scalar') frame.text += chunk;
    };
    this.#parser.on('text', text);
    this.#parser.on('cdata', text);
    this.#parser.write(xml).close();
    return this.#root;
  }

  #open(tag: SaxesTagPlain): void {
    if (this.#stack.length >= MAX_DEPTH) throw this.#error(`more than ${String(MAX_DEPTH)} nested elements`);
    this.#scopes.push(declarationsOf(tag.attributes));
    const parent = this.#stack.at(-1);
    if (parent === undefined) {
      const name = localName(tag.name);
      if (name !== this.#rootName) {
        throw refusal(`expected element type <${this.#rootName}> but have <${name}>`);
      }
      this.#stack.push(this.#enterStruct(tag, this.#plan, this.#root));
      return;
    }
    this.#stack.push(this.#child(parent, tag));
  }

  #child(parent: Frame, tag: SaxesTagPlain): Frame {
    if (parent.kind === 'skip' || parent.kind === 'scalar') return SKIP;
    const name = localName(tag.name);
    const depth = parent.kind === 'path' ? parent.depth : 0;
    const candidates = (parent.kind === 'path' ? parent.fields : parent.plan.content).filter((field) => {
      if (field.xml.kind !== 'element') return false;
      const step = depth < field.xml.parents.length ? field.xml.parents[depth] : field.xml.name;
      return step === name && (field.xmlNamespace === undefined || field.xmlNamespace === this.#namespaceOf(tag.name));
    });
    const field = candidates.find((f) => f.xml.kind === 'element' && f.xml.parents.length === depth);
    if (field !== undefined) return this.#enterField(field, tag, parent.target);
    return candidates.length > 0 ? { kind: 'path', fields: candidates, target: parent.target, depth: depth + 1 } : SKIP;
  }

  #enterField(field: FieldPlan, tag: SaxesTagPlain, owner: Fields): Frame {
    if (field.kind !== 'struct') return { kind: 'scalar', field, target: owner, text: '' };
    const plan = planOf(field.type);
    if (field.isList) {
      const item: Fields = {};
      const list = (owner[field.key] ??= []) as Fields[];
      list.push(item);
      return this.#enterStruct(tag, plan, item);
    }
    const target = (owner[field.key] ??= {}) as Fields;
    return this.#enterStruct(tag, plan, target, field.isPointer ? undefined : { owner, key: field.key });
  }

  #enterStruct(tag: SaxesTagPlain, plan: TypePlan, target: Fields, forget?: Forget): Frame {
    if (plan.xmlName !== undefined) {
      const space = this.#namespaceOf(tag.name);
      target['XMLName'] = { ...(space === '' ? {} : { Space: space }), Local: localName(tag.name) };
    }
    for (const [name, text] of Object.entries(tag.attributes)) {
      const field = plan.attributes.find((f) => f.xml.kind === 'attribute' && f.xml.name === localName(name));
      if (field !== undefined && !isDeclaration(name)) this.#assign(plan, field, target, text);
    }
    return { kind: 'struct', plan, target, text: '', ...(forget === undefined ? {} : { forget }) };
  }

  #close(): void {
    this.#scopes.pop();
    const frame = this.#stack.pop();
    if (frame?.kind === 'scalar') {
      this.#assign(this.#plan, frame.field, frame.target, frame.text);
    } else if (frame?.kind === 'struct') {
      const field = frame.plan.content.find((f) => f.xml.kind === 'text');
      if (field !== undefined) this.#assign(frame.plan, field, frame.target, frame.text);
      if (frame.forget !== undefined && Object.keys(frame.target).length === 0) {
        Reflect.deleteProperty(frame.forget.owner, frame.forget.key);
      }
    }
  }

  /** Stores a scalar; a zero value of a plain field stays out, as in the whole sparse form. */
  #assign(plan: TypePlan, field: FieldPlan, target: Fields, text: string): void {
    const value = this.#scalar(field, text);
    if (plan.name === 'Alias' && typeof value === 'string' && value.startsWith(ALIAS_PREFIX)) {
      target['UserDefined'] = true;
      return this.#store(field, target, value.slice(ALIAS_PREFIX.length));
    }
    this.#store(field, target, value);
  }

  #store(field: FieldPlan, target: Fields, value: unknown): void {
    if (!field.isPointer && (value === '' || value === 0 || value === false)) {
      Reflect.deleteProperty(target, field.key);
    } else {
      target[field.key] = value;
    }
  }

  #scalar(field: FieldPlan, text: string): string | number | bigint | boolean {
    switch (field.kind) {
      case 'string':
        return text;
      case 'Time':
        return formatGoTime(text.trim());
      case 'bool':
        return readBool(text.trim());
      default: {
        const value = parseInteger(field.kind, text);
        if (value === undefined) throw refusal(numberError(field.kind, text.trim()));
        return value;
      }
    }
  }

  #namespaceOf(qualifiedName: string): string {
    const colon = qualifiedName.indexOf(':');
    const prefix = colon < 0 ? '' : qualifiedName.slice(0, colon);
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const uri = this.#scopes[i]?.[prefix];
      if (uri !== undefined) return uri;
    }
    // Go takes a prefix that nobody declared for the namespace itself.
    return prefix;
  }

  /** In Go's words, as far as Go refuses the text too. */
  #syntaxError(xml: string, reason: string): VmModelError {
    const words = goXmlError(xml);
    return words === undefined ? this.#error(reason) : refusal(words);
  }

  #error(reason: string): VmModelError {
    return new VmModelError('InvalidXml', `domain XML, line ${String(this.#parser.line)}: ${reason}`);
  }
}

/** An error in Go's own words. */
function refusal(words: string): VmModelError {
  return new VmModelError('InvalidXml', words);
}

/** What Go's strconv says of a text that is no number of a kind. */
function numberError(kind: string, text: string): string {
  const isUnsigned = kind.startsWith('u');
  const isNumber = isUnsigned ? /^\d+$/.test(text) : /^[+-]?\d+$/.test(text);
  const why = isNumber ? 'value out of range' : 'invalid syntax';
  return `strconv.${isUnsigned ? 'ParseUint' : 'ParseInt'}: parsing ${JSON.stringify(text)}: ${why}`;
}

function readBool(text: string): boolean {
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) return true;
  if (/^(0|f|F|FALSE|false|False|)$/.test(text)) return false;
  throw refusal(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
}

function localName(qualifiedName: string): string {
  return qualifiedName.slice(qualifiedName.indexOf(':') + 1);
}

function isDeclaration(name: string): boolean {
  return name === 'xmlns' || name.startsWith('xmlns:');
}

function declarationsOf(attributes: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> | undefined {
  const names = Object.keys(attributes).filter(isDeclaration);
  if (names.length === 0) return undefined;
  return Object.fromEntries(
    names.map((name) => [name === 'xmlns' ? '' : name.slice('xmlns:'.length), String(attributes[name])]),
  );
}
