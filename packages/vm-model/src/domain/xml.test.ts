import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VmModelError } from '../errors.ts';
import type { DomainSpec } from '../gen/domain-types.gen.ts';
import { renderJson } from '../json/lossless.ts';
import { arbitraryOf } from '../testing/arbitrary-domain.ts';
import { readBundle } from '../testing/bundle.ts';
import { parseDomainJson } from './json-reader.ts';
import { renderDomainSpecJson } from './json-writer.ts';
import { parseDomainElementXml, parseDomainXml } from './xml-reader.ts';
import { renderDomainElementXml, renderDomainXml } from './xml-writer.ts';
import { emptyDomainSpec } from './zero.ts';

const converter = new Map(readBundle('converter').map((file) => [file.path, file]));
const cases = [...converter.keys()]
  .filter((path) => path.endsWith('/domain.xml'))
  .map((path) => path.slice(0, -'/domain.xml'.length));

function caseXml(name: string): string {
  return converter.get(`${name}/domain.xml`)?.text ?? '';
}

function caseSpec(name: string): DomainSpec {
  return parseDomainJson(renderJson(converter.get(`${name}/domain.json`)?.json)).Spec;
}

/** What the reader drops as Go does: names of elements, the qemu namespace and command line, empty lists. */
function comparable(spec: DomainSpec): unknown {
  const text = renderDomainSpecJson({ ...spec, XmlNS: undefined, QEMUCmd: undefined });
  return JSON.parse(text, (key, value: unknown) =>
    key === 'XMLName' || (Array.isArray(value) && value.length === 0) ? null : value,
  );
}

describe('the domains that KubeVirt v1.9.0 made', () => {
  test('there are enough of them', () => {
    expect(cases.length).toBeGreaterThan(70);
  });

  test.each(cases)('%s: the spec of the JSON renders to the XML, byte for byte', (name) => {
    expect(renderDomainXml(caseSpec(name), { indent: '\t' })).toBe(caseXml(name));
  });

  test.each(cases)('%s: the XML reads as the spec of the JSON', (name) => {
    expect(comparable(parseDomainXml(caseXml(name)))).toEqual(comparable(caseSpec(name)));
  });
});

test('a live domain of libvirt reads exactly as Go reads it', () => {
  const samples = new Map(readBundle('wire-samples').map((file) => [file.path, file]));
  const spec = parseDomainXml(samples.get('libvirt-domain.xml')?.text ?? '');
  const go = (samples.get('v1.9.0/libvirt-domain.json')?.json as { readonly Spec: unknown }).Spec;
  expect(renderDomainSpecJson(spec)).toBe(renderJson(go));
});

test('the define XML of the recorded launchers is read and written again without loss', () => {
  const defines = readBundle('captures').filter(({ path }) => /\/define-\d\.xml$/.test(path));
  expect(defines.length).toBeGreaterThan(5);
  for (const { text = '' } of defines) {
    const spec = parseDomainXml(text);
    spec.XmlNS = /xmlns:qemu="([^"]*)"/.exec(text)?.[1];
    expect(renderDomainXml(spec, { indent: '\t' })).toBe(
      text.replace(/\n\t<qemu:commandline>[^]*<\/qemu:commandline>/, ''),
    );
  }
});

describe('writing', () => {
  test('compact form has no white space between elements', () => {
    const spec = emptyDomainSpec();
    Object.assign(spec, { Type: 'kvm', Name: 'a_b', Devices: { Rng: { Model: 'virtio', Backend: { Source: '/r' } } } });
    expect(renderDomainXml(spec)).toBe(
      '<domain type="kvm"><name>a_b</name><memory unit="">0</memory><os><type></type></os>' +
        '<devices><rng model="virtio"><backend>/r</backend></rng></devices>' +
        '<metadata><kubevirt xmlns="http://kubevirt.io"><uid></uid></kubevirt></metadata><cpu></cpu></domain>',
    );
  });

  test('text and attributes are escaped as by Go', () => {
    const xml = renderDomainElementXml('ACPITable', 'table', { Type: `a&<>"'\t\n\r`, Path: `b&<>"'\t\n\r\u0001` });
    expect(xml).toBe(
      '<table type="a&amp;&lt;&gt;&#34;&#39;&#x9;&#xA;&#xD;">b&amp;&lt;&gt;&#34;&#39;&#x9;&#xA;&#xD;\ufffd</table>',
    );
  });

  test('64-bit numbers keep every digit', () => {
    const xml = renderDomainElementXml('Memory', 'memory', { Value: 18446744073709551615n, Unit: 'b' });
    expect(xml).toBe('<memory unit="b">18446744073709551615</memory>');
    expect(parseDomainElementXml('Memory', 'memory', xml)).toEqual({ Value: 18446744073709551615n, Unit: 'b' });
  });
});

describe('reading', () => {
  test('unknown elements and attributes are dropped at any depth', () => {
    const spec = parseDomainXml('<domain id="3" x="1"><odd><name>no</name></odd><name>a_b<i>x</i></name></domain>');
    expect(spec).toEqual({ ...emptyDomainSpec(), XMLName: { Local: 'domain' }, Name: 'a_b' });
  });

  test('a repeated element fills the same object again', () => {
    const spec = parseDomainXml(
      '<domain><clock offset="utc"/><clock timezone="UTC"/><name>a</name><name>b</name></domain>',
    );
    expect(spec.Clock).toEqual({ Offset: 'utc', Timezone: 'UTC' });
    expect(spec.Name).toBe('b');
  });

  test('an alias loses ua- and remembers it', () => {
    const disks = '<disk><alias name="ua-root"/></disk><disk><alias name="virtio-disk1"/></disk>';
    expect(parseDomainXml(`<domain><devices>${disks}</devices></domain>`).Devices.Disks?.map((d) => d.Alias)).toEqual([
      { Name: 'root', UserDefined: true },
      { Name: 'virtio-disk1' },
    ]);
  });

  test('the KubeVirt metadata is found by namespace, whatever the prefix', () => {
    const kubevirt = '<k:kubevirt xmlns:k="http://kubevirt.io"><k:uid>u1</k:uid></k:kubevirt>';
    expect(parseDomainXml(`<domain><metadata>${kubevirt}</metadata></domain>`).Metadata.KubeVirt.UID).toBe('u1');
    const foreign = '<kubevirt><uid>u2</uid></kubevirt>';
    expect(parseDomainXml(`<domain><metadata>${foreign}</metadata></domain>`).Metadata.KubeVirt).toEqual({});
  });

  test.each([
    ['<domain>\n<memory unit="b">many</memory>\n</domain>', 'strconv.ParseUint: parsing "many": invalid syntax'],
    ['<domain>\n<vcpu>-1</vcpu></domain>', 'strconv.ParseUint: parsing "-1": invalid syntax'],
    ['<domain>\n<vcpu>4294967296</vcpu></domain>', 'strconv.ParseUint: parsing "4294967296": value out of range'],
    ['<guest></guest>', 'expected element type <domain> but have <guest>'],
  ])('refuses the values of %s as Go does', (xml, message) => {
    expect(() => parseDomainXml(xml)).toThrow(new VmModelError('InvalidXml', message));
  });

  test.each([
    ['', 'EOF'],
    ['   ', 'EOF'],
    ['no xml', 'EOF'],
    ['<domain>\n', 'XML syntax error on line 2: unexpected EOF'],
    ['<dom', 'XML syntax error on line 1: unexpected EOF'],
    ['<domain></name>', 'XML syntax error on line 1: element <domain> closed by </name>'],
    ['<domain>\n<name>a</domain>', 'XML syntax error on line 2: element <name> closed by </domain>'],
    ['</domain>', 'XML syntax error on line 1: unexpected end element </domain>'],
    ['<a:domain></b:domain>', 'XML syntax error on line 1: element <domain> in space a closed by </domain> in space b'],
    ['<domain><></domain>', 'XML syntax error on line 1: expected element name after <'],
    ['<domain a=b/>', 'XML syntax error on line 1: unquoted or missing attribute value in element'],
    ['<domain a/>', 'XML syntax error on line 1: attribute name without = in element'],
    ['<domain a="<"/>', 'XML syntax error on line 1: unescaped < inside quoted string'],
    ['<domain / >', 'XML syntax error on line 1: expected /> in element'],
    ['<domain><name>a&b</name></domain>', 'XML syntax error on line 1: invalid character entity &b (no semicolon)'],
    ['<domain><name>&nbsp;</name></domain>', 'XML syntax error on line 1: invalid character entity &nbsp;'],
    ['<domain><name>\u0001</name></domain>', 'XML syntax error on line 1: illegal character code U+0001'],
    ['<domain><!-- a -- b --></domain>', 'XML syntax error on line 1: invalid sequence "--" not allowed in comments'],
    ['<domain><![CDATA[a</domain>', 'XML syntax error on line 1: unexpected EOF in CDATA section'],
  ])('refuses %j as Go does', (xml, message) => {
    expect(() => parseDomainXml(xml)).toThrow(new VmModelError('InvalidXml', message));
  });

  test('refuses what Go would not read at all', () => {
    expect(() => parseDomainXml('<domain/><domain/>')).toThrow(/^domain XML, line \d+: /);
  });

  test('entities of a document type are never expanded', () => {
    const levels = Array.from({ length: 20 }, (_, i) => `<!ENTITY e${i + 1} "&e${i};&e${i};">`).join('');
    const bomb = `<!DOCTYPE domain [<!ENTITY e0 "boom">${levels}]><domain><name>&e20;</name></domain>`;
    expect(() => parseDomainXml(bomb)).toThrow(VmModelError);
    const file = '<!DOCTYPE domain [<!ENTITY x SYSTEM "file:///etc/passwd">]><domain><name>&x;</name></domain>';
    expect(() => parseDomainXml(file)).toThrow(VmModelError);
  });

  test('nesting is bounded, as in Go', () => {
    const deep = (n: number): string => `<domain>${'<a>'.repeat(n)}${'</a>'.repeat(n)}</domain>`;
    expect(parseDomainXml(deep(9_000)).Devices).toEqual({});
    expect(() => parseDomainXml(deep(10_001))).toThrow('more than 10000 nested elements');
  });

  test('random and mutated text gives a domain or an error with a code', () => {
    const whole = caseXml(cases[0] ?? '');
    const mutated = fc
      .tuple(fc.nat(whole.length), fc.nat(60), fc.constantFrom('', '<', '>', '&', '"', '</domain>', '<x>', '\0'))
      .map(([at, cut, put]) => whole.slice(0, at) + put + whole.slice(at + cut));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), mutated), (xml) => {
        try {
          parseDomainXml(xml);
        } catch (caught) {
          expect(caught).toBeInstanceOf(VmModelError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

test('what is written reads as what it was, compact and indented, for any domain', () => {
  fc.assert(
    fc.property(arbitraryOf('DomainSpec', 'xml'), (domain) => {
      const spec = domain as unknown as DomainSpec;
      expect(parseDomainXml(renderDomainXml(spec))).toEqual(spec);
      expect(parseDomainXml(renderDomainXml(spec, { indent: '\t' }))).toEqual(spec);
    }),
    { numRuns: 60 },
  );
});
