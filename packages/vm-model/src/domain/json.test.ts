import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Domain } from '../gen/domain-types.gen.ts';
import { VmModelError } from '../errors.ts';
import { escapeHtml, renderJson } from '../json/lossless.ts';
import { arbitraryOf } from '../testing/arbitrary-domain.ts';
import { readBundle } from '../testing/bundle.ts';
import { parseDomainJson } from './json-reader.ts';
import { renderDomainJson } from './json-writer.ts';
import { emptyDomain } from './zero.ts';

const samples = readBundle('wire-samples').filter(({ path }) => /\/(domain-\w+|libvirt-domain)\.json$/.test(path));
const current = samples.filter(({ path }) => path.startsWith('v1.9.0/'));

interface Capture {
  readonly request?: { readonly embedded?: Readonly<Record<string, unknown>> };
  readonly response?: { readonly embedded?: Readonly<Record<string, unknown>> };
}

const captures = readBundle('captures');

/** The domain JSON of every recorded message of a release, but for the malformed ones of the notify server's tests. */
function capturedDomains(release: string): readonly unknown[] {
  return captures
    .filter(({ path }) => path.startsWith(`${release}/`) && !path.includes('/notify-server/'))
    .filter(({ path }) => /GetDomain|HandleDomainEvent/.test(path))
    .flatMap(({ json }) => {
      const { request, response } = json as Capture;
      return [...Object.entries(request?.embedded ?? {}), ...Object.entries(response?.embedded ?? {})];
    })
    .filter(([field]) => /domain(JSON)?$/i.test(field))
    .map(([, value]) => value)
    .filter((value) => typeof value === 'object' && value !== null && 'Spec' in value);
}

describe('what Go v1.9.0 printed', () => {
  test.each(current.map(({ path, json }) => [path, renderJson(json)]))('%s comes out byte for byte', (_path, text) => {
    const go = escapeHtml(text);
    expect(renderDomainJson(parseDomainJson(go))).toBe(go);
  });

  test('every domain of the recorded traffic comes out byte for byte', () => {
    const domains = capturedDomains('v1.9.0');
    expect(domains.length).toBeGreaterThan(50);
    for (const domain of domains) {
      const go = escapeHtml(renderJson(domain));
      expect(renderDomainJson(parseDomainJson(go))).toBe(go);
    }
  });

  test('every domain of the converter cases comes out byte for byte', () => {
    const domains = readBundle('converter').filter(({ path }) => path.endsWith('/domain.json'));
    expect(domains.length).toBeGreaterThan(70);
    for (const { json } of domains) {
      const go = escapeHtml(renderJson(json));
      expect(renderDomainJson(parseDomainJson(go))).toBe(go);
    }
  });
});

describe('what older releases print', () => {
  test('their domains are read, with the keys that still exist', () => {
    const domains = [...capturedDomains('v1.0.1'), ...capturedDomains('v1.3.1'), ...capturedDomains('handlers')];
    expect(domains.length).toBeGreaterThan(20);
    for (const json of domains) {
      const domain = parseDomainJson(renderJson(json));
      expect(domain.ObjectMeta.name).toBe((json as Domain).ObjectMeta.name);
      expect(domain.Status.Status ?? '').toBe((json as Domain).Status.Status);
    }
  });

  test('OS.ACPI.Table as one object (v1.2 to v1.5) reads as a list of one', () => {
    const domain = parseDomainJson('{"Spec":{"OS":{"ACPI":{"Table":{"Path":"/slic","Type":"slic"}}}}}');
    expect(domain.Spec.OS.ACPI?.Table).toEqual([{ Path: '/slic', Type: 'slic' }]);
  });

  test('keys that were dropped or replaced since are ignored: Watchdog, BootMenu.Enabled', () => {
    const domain = parseDomainJson(
      '{"Spec":{"OS":{"BootMenu":{"Enabled":true,"Timeout":3}},"Devices":{"Watchdog":{"Model":"i6300esb"}}}}',
    );
    expect(domain.Spec.Devices).toEqual({});
    expect(domain.Spec.OS.BootMenu).toEqual({ Timeout: 3 });
  });
});

describe('reading', () => {
  test('null, missing and zero values are the same: nothing is set', () => {
    const text =
      '{"kind":"","ObjectMeta":null,"Spec":{"Name":"","Clock":null,"Devices":{"Disks":null}},"Status":{"PanicCount":0}}';
    expect(parseDomainJson(text)).toEqual(emptyDomain());
    expect(parseDomainJson('null')).toEqual(emptyDomain());
    expect(parseDomainJson('{}')).toEqual(emptyDomain());
  });

  test('a zero behind a pointer and an empty list are kept', () => {
    const domain = parseDomainJson(
      '{"Spec":{"Devices":{"Disks":[],"Interfaces":[{"Driver":{"Queues":0}}]},"IOThreads":{}}}',
    );
    expect(domain.Spec.Devices).toEqual({ Interfaces: [{ Driver: { Queues: 0 } }], Disks: [] });
    expect(domain.Spec.IOThreads).toEqual({});
  });

  test('unknown keys are dropped, and other capitalisations of known ones are unknown', () => {
    const domain = parseDomainJson('{"spec":{"Name":"a"},"Spec":{"name":"b","Extra":{"x":1}},"more":[1]}');
    expect(domain).toEqual(emptyDomain());
  });

  test('of duplicate keys the last wins', () => {
    expect(parseDomainJson('{"Spec":{"Name":"a","Name":"b"}}').Spec.Name).toBe('b');
  });

  test('64-bit numbers keep every digit', () => {
    const text = '{"Status":{"GuestPanicInfo":{"Arg1":18446744073709551615,"Arg2":9007199254740993,"Arg3":7}}}';
    const domain = parseDomainJson(text);
    expect(domain.Status.GuestPanicInfo).toEqual({ Arg1: 18446744073709551615n, Arg2: 9007199254740993n, Arg3: 7 });
    expect(renderDomainJson(domain)).toContain('"Arg1":18446744073709551615,"Arg2":9007199254740993,"Arg3":7,"Arg4":0');
  });

  test('times with an offset or a fraction become whole seconds in UTC', () => {
    const text = '{"ObjectMeta":{"deletionTimestamp":"2026-03-01T12:00:05.9+02:00"}}';
    expect(parseDomainJson(text).ObjectMeta.deletionTimestamp).toBe('2026-03-01T10:00:05Z');
  });

  test.each([
    ['{"Spec":{"Name":5}}', 'json: cannot unmarshal number into Go struct field DomainSpec.Spec.Name of type string'],
    [
      '{"Spec":{"Devices":{"Disks":{}}}}',
      'json: cannot unmarshal object into Go struct field Devices.Spec.Devices.Disks of type []api.Disk',
    ],
    ['{"Spec":[]}', 'json: cannot unmarshal array into Go struct field Domain.Spec of type api.DomainSpec'],
    [
      '{"Spec":{"Memory":{"Value":"1"}}}',
      'json: cannot unmarshal string into Go struct field Memory.Spec.Memory.Value of type uint64',
    ],
    [
      '{"Spec":{"Memory":{"Value":-1}}}',
      'json: cannot unmarshal number -1 into Go struct field Memory.Spec.Memory.Value of type uint64',
    ],
    [
      '{"Spec":{"VCPU":{"CPUs":4294967296}}}',
      'json: cannot unmarshal number 4294967296 into Go struct field VCPU.Spec.VCPU.CPUs of type uint32',
    ],
    ['[]', 'json: cannot unmarshal array into Go value of type api.Domain'],
    ['"x"', 'json: cannot unmarshal string into Go value of type api.Domain'],
  ])('refuses %s with the text of Go', (text, message) => {
    expect(() => parseDomainJson(text)).toThrow(new VmModelError('InvalidJson', message));
  });

  test('a document nested too deep is an error, not a crash', () => {
    const text = `{"Spec":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    expect(() => parseDomainJson(text)).toThrow(VmModelError);
    expect(() => parseDomainJson(`${'{"Spec":'.repeat(100_000)}1234567890123456789${'}'.repeat(100_000)}`)).toThrow(
      VmModelError,
    );
  });

  test('random text gives a domain or an error with a code', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        try {
          renderDomainJson(parseDomainJson(text));
        } catch (caught) {
          expect(caught).toBeInstanceOf(VmModelError);
        }
      }),
    );
  });

  test('a mutated domain gives a domain or an error with a code', () => {
    const full = renderJson(current.find(({ path }) => path.endsWith('domain-full.json'))?.json);
    fc.assert(
      fc.property(
        fc.nat(full.length),
        fc.nat(40),
        fc.constantFrom('null', '[]', '{}', '"', '-1', '1e9', ''),
        (at, cut, put) => {
          try {
            parseDomainJson(full.slice(0, at) + put + full.slice(at + cut));
          } catch (caught) {
            expect(caught).toBeInstanceOf(VmModelError);
          }
        },
      ),
    );
  });
});

describe('printing', () => {
  test('an empty domain prints every key, in the order of Go', () => {
    const zero = current.find(({ path }) => path.endsWith('domain-zero.json'));
    expect(renderDomainJson(emptyDomain())).toBe(renderJson(zero?.json));
  });

  test('text is escaped as by Go: HTML, line separators, control characters, bad surrogates', () => {
    const domain = emptyDomain();
    domain.Spec.Name = '<a href="x">&\u2028\u2029\u0001\b\f\n\ud800é';
    expect(renderDomainJson(domain)).toContain(
      '"Name":"\\u003ca href=\\"x\\"\\u003e\\u0026\\u2028\\u2029\\u0001\\b\\f\\n\ufffdé"',
    );
  });

  test("Go's zero time is null", () => {
    const domain = emptyDomain();
    domain.Spec.Metadata.KubeVirt.GracePeriod = { DeletionTimestamp: '0001-01-01T00:00:00Z' };
    expect(renderDomainJson(domain)).toContain('"DeletionTimestamp":null');
  });

  test('labels are sorted by their bytes', () => {
    const domain = emptyDomain();
    domain.ObjectMeta.labels = { é: '1', b: '2', a: '3', '10': '4', '9': '5' };
    expect(renderDomainJson(domain)).toContain('"labels":{"10":"4","9":"5","a":"3","b":"2","é":"1"}');
  });

  test('MigrationMetadata.Completed, which handlers up to v1.5 need, is printed only when set', () => {
    const domain = emptyDomain();
    domain.Spec.Metadata.KubeVirt.Migration = { UID: 'm', Completed: true };
    expect(renderDomainJson(domain)).toContain('"Mode":"","Completed":true}');
    domain.Spec.Metadata.KubeVirt.Migration = { UID: 'm' };
    expect(renderDomainJson(domain)).not.toContain('Completed');
  });

  test('a value that does not fit its field is refused by name', () => {
    const domain = emptyDomain();
    domain.Spec.Memory.Value = 1.5;
    expect(() => renderDomainJson(domain)).toThrow('Value of type uint64 cannot hold 1.5');
  });
});

test('what is printed reads as what it was, for any domain', () => {
  fc.assert(
    fc.property(arbitraryOf('Domain', 'json'), (domain) => {
      const typed = domain as unknown as Domain;
      expect(parseDomainJson(renderDomainJson(typed))).toEqual(typed);
    }),
    { numRuns: 60 },
  );
});
