import fc from 'fast-check';
import { expect, test } from 'vitest';
import { VmModelError } from '../errors.ts';
import type { XmlElement } from './xml-tree.ts';
import { parseXmlTree, renderXmlTree, xmlChild, xmlElement } from './xml-tree.ts';

const name = fc.stringMatching(/^[a-z][a-z:_-]{0,8}$/).filter((text) => !text.endsWith(':') && !text.includes('::'));
const value = fc.string({ maxLength: 12 }).map((text) => text.replaceAll(/[^ -~\u00a0-\ud7ff]/g, '.'));

function tree(depth: number): fc.Arbitrary<XmlElement> {
  const children: fc.Arbitrary<XmlElement[]> =
    depth === 0 ? fc.constant([]) : fc.array(tree(depth - 1), { maxLength: 3 });
  return fc
    .record({ name, attributes: fc.dictionary(name, value, { maxKeys: 3 }), children, text: value })
    .map((element) => ({
      ...element,
      attributes: new Map(Object.entries(element.attributes)),
      text: element.children.length === 0 ? element.text : '',
    }));
}

test('what is printed reads back, with any indentation', () => {
  fc.assert(
    fc.property(tree(3), fc.constantFrom('', '  ', '\t'), (element, indent) => {
      expect(parseXmlTree(renderXmlTree(element, { indent }))).toEqual(element);
    }),
  );
});

test('keeps elements, attributes and namespaces that no domain type knows', () => {
  const xml = "<domain xmlns:q='urn:q'><q:cmd><q:arg value='-x'/></q:cmd><odd a='1'>text</odd></domain>";
  expect(renderXmlTree(parseXmlTree(xml), { indent: '  ' })).toBe(
    [
      '<domain xmlns:q="urn:q">',
      '  <q:cmd>',
      '    <q:arg value="-x"></q:arg>',
      '  </q:cmd>',
      '  <odd a="1">text</odd>',
      '</domain>',
    ].join('\n'),
  );
  expect(xmlChild(parseXmlTree(xml), 'odd')?.text).toBe('text');
  expect(xmlChild(xmlElement('empty'), 'odd')).toBeUndefined();
});

test.each(['', '<a>', '<a></b>', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'])('refuses %j with its line', (xml) => {
  expect(() => parseXmlTree(xml)).toThrow(VmModelError);
});
