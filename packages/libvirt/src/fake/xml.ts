import { ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import { daemonError } from './errors.ts';

/** An element: attributes in their order, children are elements and texts. */
export interface XmlElement {
  name: string;
  readonly attributes: Record<string, string>;
  children: (XmlElement | string)[];
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
const TOKEN =
  /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!\[CDATA\[([\s\S]*?)\]\]>|<\/\s*([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/gy;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/g;

/**
 * Parses the XML of a domain or device: elements, attributes, text, CDATA; no document types.
 *
 * @throws {LibvirtError} XML_DETAIL as the daemon does for broken XML.
 */
export function parseXml(text: string): XmlElement {
  const root: XmlElement = { name: '', attributes: {}, children: [] };
  const open = [root];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw broken(text, at, 'not well-formed');
    const [, cdata, closing, name, attributes = '', selfClosing, plain] = match;
    const top = open.at(-1) ?? root;
    if (cdata !== undefined) top.children.push(cdata);
    else if (plain !== undefined) top.children.push(decodeEntities(plain));
    else if (closing !== undefined) {
      if (top === root || top.name !== closing) throw broken(text, at, `opening and ending tag mismatch: ${closing}`);
      open.pop();
    } else if (name !== undefined) {
      const element: XmlElement = { name, attributes: parseAttributes(attributes), children: [] };
      top.children.push(element);
      if (selfClosing !== '/') open.push(element);
    }
  }
  const elements = root.children.filter((child) => typeof child !== 'string');
  const [element] = elements;
  if (open.length > 1 || element === undefined || elements.length > 1)
    throw broken(text, text.length, 'premature end of data');
  return element;
}

function parseAttributes(text: string): Record<string, string> {
  const pairs = [...text.matchAll(ATTRIBUTE)].map(([, name = '', double, single]) => [
    name,
    decodeEntities(double ?? single ?? ''),
  ]);
  return Object.fromEntries(pairs) as Record<string, string>;
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x?[\da-fA-F]+|\w+);/g, (whole, entity: string) => {
    if (!entity.startsWith('#')) return ENTITIES[entity] ?? whole;
    const code = entity.startsWith('#x') ? parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    return code > 0 && code <= 0x10_ffff ? String.fromCodePoint(code) : whole;
  });
}

function broken(text: string, at: number, what: string): Error {
  const line = text.slice(0, at).split('\n').length;
  return daemonError(ErrorNumber.XML_DETAIL, ErrorDomain.DOMAIN, `(domain_definition):${String(line)}: ${what}`);
}

/** Prints as libvirt does: two spaces per level, single quotes, but users' metadata with double quotes. */
export function renderXml(element: XmlElement, indent = '', quote: "'" | '"' = "'"): string {
  const attributes = Object.entries(element.attributes).map(
    ([name, value]) =>
      ` ${name}=${quote}${encode(value).replaceAll(quote, quote === '"' ? '&quot;' : '&apos;')}${quote}`,
  );
  const inner = element.name === 'metadata' ? '"' : quote;
  const start = `${indent}<${element.name}${attributes.join('')}`;
  const elements = element.children.filter((child) => typeof child !== 'string');
  const text = element.children.filter((child) => typeof child === 'string').join('');
  if (elements.length > 0) {
    const body = elements.map((one) => renderXml(one, `${indent}  `, inner)).join('');
    return `${start}>\n${body}${indent}</${element.name}>\n`;
  }
  return text.trim() === '' ? `${start}/>\n` : `${start}>${encode(text)}</${element.name}>\n`;
}

function encode(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Child elements, of one name if given. */
export function childrenOf(element: XmlElement | undefined, name?: string): XmlElement[] {
  const all = element?.children.filter((child) => typeof child !== 'string') ?? [];
  return name === undefined ? all : all.filter((child) => child.name === name);
}

/** The first child on a path such as `os/type`. */
export function child(element: XmlElement | undefined, path: string): XmlElement | undefined {
  return path.split('/').reduce<XmlElement | undefined>((at, name) => childrenOf(at, name)[0], element);
}

/** Text of the first child on a path, undefined when there is none. */
export function childText(element: XmlElement, path: string): string | undefined {
  const found = child(element, path);
  return found?.children
    .filter((one) => typeof one === 'string')
    .join('')
    .trim();
}

/** Replaces the text child element `name`, or adds it. */
export function setChildText(
  element: XmlElement,
  name: string,
  text: string,
  attributes: Record<string, string> = {},
): void {
  const found = child(element, name);
  const made: XmlElement = { name, attributes, children: [text] };
  if (found === undefined) element.children.push(made);
  else element.children[element.children.indexOf(found)] = made;
}
