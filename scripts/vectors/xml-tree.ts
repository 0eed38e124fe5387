import type { XmlElement } from '@virtwire/vm-model';

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
  return [...element.attributes].map(([name, value]) => `${name}="${value}"`).join(' ') || 'none';
}

function childNames(element: XmlElement): string {
  return element.children.map((child) => child.name).join(' ') || 'none';
}
