import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { escapeHtml, parseJson, renderJson } from '../json/lossless.ts';
import { readBundle } from '../testing/bundle.ts';
import { EMBEDDED, type EmbeddedField, printEmbedded, readEmbedded } from './embedded.ts';
import {
  backupOptions,
  domainStats,
  guestInfo,
  guestUsers,
  migrationOptions,
  nodeTopology,
  type Payload,
} from './index.ts';

const samples = new Map(readBundle('wire-samples').map(({ path, json = {} }) => [path, escapeHtml(renderJson(json))]));
const sample = (path: string): string => samples.get(path) ?? '';

const printed = <T>(payload: Payload<T>, text: string): string => payload.render(payload.parse(text));

/** Samples of the encoder of v1.9.0 and the field that each belongs to. */
const SAMPLES: readonly (readonly [string, EmbeddedField])[] = [
  ['migrationoptions-full', 'MigrationRequest.options'],
  ['migrationoptions-zero', 'MigrationRequest.options'],
  ['guestinfo-full', 'GuestInfoResponse.guestInfoResponse'],
  ['guestinfo-zero', 'GuestInfoResponse.guestInfoResponse'],
  ['users-full', 'GuestUserListResponse.guestUserListResponse'],
  ['users-empty', 'GuestUserListResponse.guestUserListResponse'],
  ['filesystems-full', 'GuestFilesystemsResponse.guestFilesystemsResponse'],
  ['domainstats-full', 'DomainStatsResponse.domainStats'],
  ['domainstats-zero', 'DomainStatsResponse.domainStats'],
  ['backupoptions-full', 'BackupRequest.options'],
  ['backupcheckpoint-full', 'RedefineCheckpointRequest.checkpoint'],
  ['plugins-zero', 'VirtualMachineOptions.pluginsJson'],
  ['sevinfo', 'SEVInfoResponse.sevInfo'],
  ['sevmeasurement-full', 'LaunchMeasurementResponse.launchMeasurement'],
  ['sevsecret', 'InjectLaunchSecretRequest.options'],
  ['k8sevent', 'K8sEventRequest.eventJSON'],
  ['status-error', 'DomainEventRequest.statusJSON'],
  ['domain-full', 'DomainEventRequest.domainJSON'],
  ['domain-zero', 'DomainResponse.domain'],
];

function roundTrip(field: EmbeddedField, content: string): string | undefined {
  const value = readEmbedded(field, Buffer.from(content));
  return value === undefined ? undefined : printEmbedded(field, value);
}

describe('documents', () => {
  test.each(SAMPLES)('%s of v1.9.0 prints as Go prints it, byte for byte', (name, field) => {
    const text = sample(`v1.9.0/${name}.json`);
    expect(text).not.toBe('');
    expect(roundTrip(field, text)).toBe(text);
  });

  test('the topology has numa_cells, numbers as numbers, and no zeros', () => {
    const text = sample('v1.9.0/topology.json');
    expect(printed(nodeTopology, text)).toBe(text);
    expect(text).toContain('"numa_cells"');
    expect(nodeTopology.parse(text).numa_cells?.[0]?.memory?.amount).toBe(1);
    const big = '{"numa_cells":[{"memory":{"amount":18446744073709551615}}]}';
    expect(printed(nodeTopology, big)).toBe(big);
  });

  test('every document that was recorded is read, and those of v1.9.0 print the same', () => {
    let count = 0;
    for (const { path, json } of readBundle('captures')) {
      for (const [field, value, release] of embeddedIn(path, json)) {
        const text = escapeHtml(renderJson(value));
        const again = roundTrip(field, text);
        expect(again, path).toBeDefined();
        if (release === 'v1.9.0' && field !== 'VMI.vmiJson')
          expect(parseJson(again ?? ''), path).toEqual(parseJson(text));
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(500);
  });

  test('every document but the domain and the VMI keeps what it does not know', () => {
    for (const field of Object.keys(EMBEDDED) as EmbeddedField[]) {
      if (EMBEDDED[field].zero() === null || field.includes('omain')) continue;
      expect(roundTrip(field, '{"fromTomorrow":{"a":[1,"<"]}}'), field).toContain('"fromTomorrow":{"a":[1,');
    }
  });

  test('every field of the wire that holds JSON has one; the rest are an image and replies of the agent', () => {
    const [releases] = readBundle('wire-releases');
    const { embeddedPayloads } = releases?.json as { embeddedPayloads: { message: string; field: string }[] };
    const fields = embeddedPayloads.map(({ message, field }) => `${message}.${field}`);
    const others = ['ScreenshotResponse.data', 'VMStatsResponse.guest* (4..18)'];
    expect(fields.toSorted()).toEqual([...Object.keys(EMBEDDED), ...others].toSorted());
  });

  test('an empty field is no document', () => {
    expect(readEmbedded('DomainResponse.domain', '')).toBeUndefined();
    expect(readEmbedded('MigrationRequest.options', new Uint8Array())).toBeUndefined();
  });
});

interface Message {
  readonly release?: string;
  readonly request?: Side;
  readonly response?: Side;
}
interface Side {
  readonly type?: string;
  readonly embedded?: Readonly<Record<string, unknown>>;
}

function embeddedIn(path: string, json: unknown): readonly (readonly [EmbeddedField, unknown, string])[] {
  const { request, response } = (json ?? {}) as Message;
  return [request, response].flatMap((side) =>
    Object.entries(side?.embedded ?? {}).flatMap(([name, value]) => {
      const type = name === 'vmi.vmiJson' ? 'VMI' : (side?.type ?? '').split('.').at(-1);
      const field = `${type ?? ''}.${name.split('.').at(-1) ?? ''}`;
      if (!isEmbedded(field) || typeof value === 'string' || isRefused(path)) return [];
      return [[field, value, path.split('/', 1)[0] ?? ''] as const];
    }),
  );
}

const isEmbedded = (field: string): field is EmbeddedField => Object.hasOwn(EMBEDDED, field);

/** Recorded to be refused: their documents are not what they should be. */
function isRefused(path: string): boolean {
  return /malformed|bad-specification|notify-server/.test(path);
}

describe('what Go does and others do not', () => {
  test('a key in another case is another key', () => {
    expect(guestInfo.parse('{"HostName":"a","hostname":"b"}').hostname).toBe('b');
    expect(guestInfo.parse('{"HostName":"a"}').hostname).toBe('');
  });

  test('null is zero, for a scalar, an object, a list and a whole document', () => {
    const options = migrationOptions.parse('{"Bandwidth":null,"ProgressTimeout":null,"StallDetectorOptions":null}');
    expect(options).toEqual(migrationOptions.zero());
    expect(domainStats.parse('null')).toEqual(domainStats.zero());
    expect(guestInfo.parse('{"os":null,"userList":null}')).toEqual(guestInfo.zero());
    expect(guestUsers.parse('[null]')).toEqual([{ userName: '', domain: '', loginTime: 0 }]);
  });

  test('a list that is null and one that is empty print differently', () => {
    const info = guestInfo.zero();
    expect(guestInfo.render(info)).toBe('{"os":{},"fsInfo":{"disks":null}}');
    expect(guestInfo.render({ ...info, fsInfo: { disks: [] } })).toBe('{"os":{},"fsInfo":{"disks":[]}}');
  });

  test('64-bit numbers keep every digit, and one more is refused', () => {
    const text = '{"Cpu":{"TimeSet":true,"Time":18446744073709551615}}';
    expect(domainStats.parse(text).Cpu?.Time).toBe(18_446_744_073_709_551_615n);
    expect(domainStats.render(domainStats.parse(text))).toContain('"Time":18446744073709551615');
    expect(() => domainStats.parse('{"Cpu":{"Time":18446744073709551616}}')).toThrow('of type uint64');
    expect(() => domainStats.parse('{"Cpu":{"Time":-1}}')).toThrow('of type uint64');
    expect(() => domainStats.parse('{"Cpu":{"Time":1.5}}')).toThrow('number 1.5');
  });

  test('a wrong kind is refused with the place', () => {
    expect(() => migrationOptions.parse('{"Bandwidth":5}')).toThrow(
      'json: cannot unmarshal number into Go struct field MigrationOptions.Bandwidth of type string',
    );
    expect(() => guestUsers.parse('{}')).toThrow('json: cannot unmarshal object into Go value of type');
    expect(() => migrationOptions.parse('[]')).toThrow('cannot unmarshal array');
    expect(() => backupOptions.parse('"x"')).toThrow(
      'json: cannot unmarshal string into Go value of type v1alpha1.BackupOptions',
    );
  });

  test('signs of markup are escaped, and text that is no text is mended', () => {
    const info = { ...guestInfo.zero(), hostname: '<a&b>\ud800' };
    expect(guestInfo.render(info)).toContain(String.raw`"hostname":"\u003ca\u0026b\u003e` + '\ufffd"');
  });
});

describe('what releases do differently', () => {
  test('migration options of v1.0: what handlers before v1.5 do not say is what they say of post-copy', () => {
    const options = migrationOptions.parse(sample('v1.0.1/migrationoptions-full.json'));
    expect(options).toMatchObject({ AllowPostCopy: true, AllowWorkloadDisruption: true, MaxDowntimeMs: 0 });
    expect(
      migrationOptions.parse('{"AllowPostCopy":true,"AllowWorkloadDisruption":false}').AllowWorkloadDisruption,
    ).toBe(false);
  });

  test('statistics of v1.0: NrVirtCpu and DiskBps are kept, what came later is zero', () => {
    const text = sample('v1.0.1/domainstats-full.json');
    const stats = domainStats.parse(text);
    expect(stats).toMatchObject({ NrVirtCpu: 1, DirtyRate: null, Load: null });
    const again = parseJson(domainStats.render(stats)) as Record<string, unknown>;
    expect(again).toMatchObject(parseJson(text) as Record<string, unknown>);
  });

  test('file systems before v1.2 have no disks', () => {
    const text = sample('v1.0.1/filesystems-full.json');
    expect(roundTrip('GuestFilesystemsResponse.guestFilesystemsResponse', text)).toBe(text);
  });

  test('objects before v1.8 print an unset creationTimestamp', () => {
    const text = sample('v1.0.1/k8sevent.json');
    expect(roundTrip('K8sEventRequest.eventJSON', text)).toBe(text);
  });
});

test('any JSON is read or refused with an error of this package, and reads the same when printed', () => {
  const fields = fc.constantFrom(...(Object.keys(EMBEDDED) as EmbeddedField[]));
  fc.assert(
    fc.property(fields, fc.json({ maxDepth: 5 }), (field, text) => {
      let once: string | undefined;
      try {
        once = roundTrip(field, text);
      } catch (caught) {
        expect((caught as { code?: string }).code).toBe('InvalidJson');
        return;
      }
      expect(roundTrip(field, once ?? '')).toBe(once);
    }),
    { numRuns: 500 },
  );
});
