import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { DomainResponse } from '../gen/kubevirt/cmd/v1/cmd.ts';
import { DomainEventRequest } from '../gen/kubevirt/notify/v1/notify.ts';
import { openHistory } from '../history/index.ts';
import { readBundle } from '../testing/bundle.ts';
import { decideEra, NO_FACTS, tellsAge } from './decide-era.ts';
import { ANY_ERA, type Era, mayBe, renderEra } from './era.ts';
import { RPC_RULES } from './rpc-rules.ts';
import { erasOfDomainJson } from './signs.ts';

const history = openHistory();
const LINES = Array.from({ length: 10 }, (_, minor) => `v1.${minor}.0`);

/** What calling every RPC of the newest release tells of a launcher of a release. */
function factsOf(release: string) {
  const rpcs = history.filesOf('v1.9.0').flatMap((file) => file.rpcs.map(({ name }) => name));
  const isServed = (rpc: string): boolean => history.hasRpc(release, rpc);
  return { ...NO_FACTS, served: rpcs.filter(isServed), missing: rpcs.filter((rpc) => !isServed(rpc)) };
}

interface Message {
  readonly release: string;
  readonly method: string;
  readonly channel: string;
  readonly request: { readonly base64: string };
  readonly response?: { readonly base64: string };
}

/** Domain JSON of real launchers, by their release. */
function recordedDomains(): readonly (readonly [string, string])[] {
  const messages = [...readBundle('captures')].filter(([path]) => /^(handlers\/)?v1\./.test(path));
  return messages.flatMap(([path, json]) => {
    const { method = '', request, response } = json as Partial<Message>;
    // Behind every recorded handler stood a launcher of v1.9.0.
    const release = path.startsWith('handlers/') ? 'v1.9.0' : (path.split('/', 1)[0] ?? '');
    if (path.includes('/notify-server/')) return [];
    if (method.endsWith('/GetDomain') && response !== undefined) {
      return [[release, DomainResponse.decode(Buffer.from(response.base64, 'base64')).domain] as const];
    }
    if (!method.endsWith('/HandleDomainEvent') || request === undefined) return [];
    const { domainJSON } = DomainEventRequest.decode(Buffer.from(request.base64, 'base64'));
    return [[release, Buffer.from(domainJSON).toString()] as const];
  });
}

describe('the era of a launcher', () => {
  test('is anything as long as nothing was seen', () => {
    expect(decideEra(NO_FACTS)).toEqual(ANY_ERA);
    expect(renderEra(ANY_ERA)).toBe('any release');
  });

  test.each(LINES)('holds %s when all RPCs were tried on one, and is as narrow as the RPCs allow', (release) => {
    const era = decideEra(factsOf(release));
    expect(mayBe(era, { since: release, until: undefined })).toBe(true);
    const alike = LINES.filter(
      (line) => history.filesOf(line)[0]?.rpcs.length === history.filesOf(release)[0]?.rpcs.length,
    );
    for (const [i, line] of LINES.entries()) {
      expect(mayBe(era, { since: line, until: LINES[i + 1] }), line).toBe(alike.includes(line));
    }
  });

  test('is read off the domain of every real launcher that was recorded', () => {
    const domains = recordedDomains().filter(([, json]) => json !== '');
    const seen = new Map<string, Set<string>>();
    for (const [release, json] of domains) {
      const era = decideEra({ ...NO_FACTS, bounds: erasOfDomainJson(json) });
      seen.set(release, (seen.get(release) ?? new Set()).add(renderEra(era)));
    }
    expect(Object.fromEntries([...seen].map(([release, eras]) => [release, [...eras]]))).toEqual({
      'v1.0.1': ['v1.0.0 to before v1.1.0'],
      'v1.9.0': ['v1.9.0 or newer'],
    });
  });

  test('tells an object from an array in OS.ACPI.Table', () => {
    const domain = (table: string): string =>
      `{"Spec":{"VCPUs":null,"CurrentMemory":null,"OS":{"ACPI":{"Table":${table}}}}}`;
    const eraOf = (json: string): Era => decideEra({ ...NO_FACTS, bounds: erasOfDomainJson(json) });
    expect(eraOf(domain('{"Type":"slic"}'))).toEqual({ since: 'v1.2.0', until: 'v1.6.0' });
    expect(eraOf(domain('[{"Type":"slic"}]')).since).toBe('v1.6.0');
  });

  test('text of a guest cannot look like a key', () => {
    const hostile = JSON.stringify({ Spec: { VCPUs: null, Name: '"IOMMUFD":"creationTimestamp":null' } });
    expect(decideEra({ ...NO_FACTS, bounds: erasOfDomainJson(hostile) })).toEqual({ since: 'v1.0.0', until: 'v1.1.0' });
  });

  test('what is no domain says nothing', () => {
    expect(erasOfDomainJson('')).toEqual([]);
    expect(erasOfDomainJson('null')).toEqual([]);
  });

  test('a launcher that serves the newest RPC and lacks an old one is new', () => {
    expect(decideEra({ ...NO_FACTS, served: ['GetVMStats'], missing: ['GetSEVInfo'] })).toEqual({
      since: 'v1.9.0',
      until: undefined,
    });
  });

  test('more facts never widen an era, and it never ends before it begins', () => {
    const rpc = fc.constantFrom(...RPC_RULES.map((rule) => rule.rpc), 'Ping', 'Nonsense');
    const release = fc.option(fc.constantFrom(...LINES), { nil: undefined });
    const facts = fc.record({
      served: fc.array(rpc, { maxLength: 4 }),
      missing: fc.array(rpc, { maxLength: 4 }),
      bounds: fc.array(fc.record({ since: release, until: release }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(facts, (seen) => {
        const era = decideEra(seen);
        expect(mayBe(era, era)).toBe(true);
        expect(decideEra({ ...seen, served: [...seen.served, 'Ping'] })).toEqual(era);
      }),
    );
  });
});

describe('RPC rules', () => {
  test('are those of the history: every RPC that came after v0.59, each with its release', () => {
    const late = history.filesOf('v1.9.0').flatMap((file) => file.rpcs.filter((rpc) => !history.has(rpc, 'v0.59.0')));
    const expected = late.map((rpc) => [rpc.name, rpc.presence.at(-1)?.since]);
    expect(RPC_RULES.map(({ rpc, since }) => [rpc, since]).toSorted()).toEqual(expected.toSorted());
  });

  test('an RPC that all launchers have tells no age', () => {
    expect(tellsAge('Ping')).toBe(false);
    expect(tellsAge('GetVMStats')).toBe(true);
  });
});
