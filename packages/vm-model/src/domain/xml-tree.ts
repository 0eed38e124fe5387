import { SaxesParser } from 'saxes';
import { VmModelError } from '../errors.ts';
import { escapeXml } from './xml-escape.ts';
import type { XmlLayout } from './xml-writer.ts';

/** As in Go's decoder. */
const MAX_DEPTH = 10_000;

/** An element of any XML, with all that it holds. */
export interface XmlElement {
  /** With its prefix, as written. */
  name: string;
  /** In the order of the document; declarations of namespaces are among them. */
  attributes: Map<string, string>;
  children: XmlElement[];
  /** The element's own text; the white space of the layout is left out where there are children. */
  text: string;
}

/** Creates an element. */
export function xmlElement(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  children: readonly XmlElement[] = [],
): XmlElement {
  return { name, attributes: new Map(Object.entries(attributes)), children: [...children], text: '' };
}

/** The first child of a name. */
export function xmlChild(parent: XmlElement | undefined, name: string): XmlElement | undefined {
  return parent?.children.find((child) => child.name === name);
}

/**
 * Reads a document into a tree that keeps what this package's domain types do not know. Comments and processing
 * instructions are dropped; entities of a document type are not expanded.
 *
 * @throws {VmModelError} `InvalidXml`
 */
export function parseXmlTree(xml: string): XmlElement {
  const root = xmlElement('');
  const stack: XmlElement[] = [root];
  const parser = new SaxesParser({ xmlns: false, position: true });
  const fail = (reason: string): never => {
    throw new VmModelError('InvalidXml', `XML, line ${String(parser.line)}: ${reason}`);
  };
  parser.on('error', (error) => fail(error.message.replace(/^(\d+:)*\d+: /, '')));
  parser.on('opentag', (tag) => {
    if (stack.length > MAX_DEPTH) fail(`more than ${String(MAX_DEPTH)} nested elements`);
    const element = xmlElement(tag.name, tag.attributes);
    stack.at(-1)?.children.push(element);
    stack.push(element);
  });
  parser.on('closetag', () => {
    const element = stack.pop();
    if (element !== undefined && element.children.length > 0) element.text = element.text.trim();
  });
  const addText = (text: string): void => {
    const element = stack.at(-1);
    if (element !== undefined) element.text += text;
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.write(xml).close();
  return root.children[0] ?? fail('no element');
}

/** Prints a tree as Go's encoding/xml prints: no self-closing tags, no header. */
export function renderXmlTree(element: XmlElement, layout: XmlLayout = {}): string {
  const { indent = '' } = layout;
  const newline = indent === '' ? '' : '\n';
  const print = ({ name, attributes, children, text }: XmlElement, depth: number): string => {
    const shown = [...attributes].map(([key, value]) => ` ${key}="${escapeXml(value)}"`).join('');
    const body = children.map((child) => newline + indent.repeat(depth + 1) + print(child, depth + 1)).join('');
    const end = children.length === 0 ? '' : newline + indent.repeat(depth);
    return `<${name}${shown}>${escapeXml(text)}${body}${end}</${name}>`;
  };
  return print(element, 0);
}
