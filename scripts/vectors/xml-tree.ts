import { SaxesParser } from 'saxes';

/** An element of a parsed XML: what counts when two are compared. */
export interface XmlElement {
  readonly name: string;
  /** In order. */
  readonly attributes: readonly (readonly [string, string])[];
  readonly children: XmlElement[];
  /** Without the white space of the layout when there are children. */
  text: string;
}

/** @throws {Error} when the text is not well-formed. */
export function parseXmlTree(xml: string): XmlElement {
  const root: XmlElement = { name: '', attributes: [], children: [], text: '' };
  const stack: XmlElement[] = [root];
  const parser = new SaxesParser({ xmlns: false });
  parser.on('opentag', (tag) => {
    const element: XmlElement = { name: tag.name, attributes: Object.entries(tag.attributes), children: [], text: '' };
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
  const [element] = root.children;
  if (element === undefined) throw new Error('no element');
  return element;
}

/** Where two trees differ: elements, attributes, text, and their order. */
export function diffXml(expected: XmlElement, actual: XmlElement, path = ''): readonly string[] {
  const here = `${path}/${expected.name}`;
  if (expected.name !== actual.name) return [`${here}: got <${actual.name}>`];
  const out: string[] = [];
  const [wantAttributes, gotAttributes] = [attributeText(expected), attributeText(actual)];
  if (wantAttributes !== gotAttributes)
    out.push(`${here}: expected attributes ${wantAttributes}, got ${gotAttributes}`);
  if (expected.text !== actual.text) out.push(`${here}: expected text "${expected.text}", got "${actual.text}"`);
  const [wantNames, gotNames] = [childNames(expected), childNames(actual)];
  if (wantNames !== gotNames) return [...out, `${here}: expected children ${wantNames}, got ${gotNames}`];
  expected.children.forEach((child, i) => {
    const other = actual.children[i];
    if (other !== undefined) out.push(...diffXml(child, other, here));
  });
  return out;
}

function attributeText(element: XmlElement): string {
  return element.attributes.map(([name, value]) => `${name}="${value}"`).join(' ') || 'none';
}

function childNames(element: XmlElement): string {
  return element.children.map((child) => child.name).join(' ') || 'none';
}
