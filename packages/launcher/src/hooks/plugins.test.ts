import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import type { SidecarMethods } from '../testing/hook-sidecar.ts';
import { serveSidecar, textOfField } from '../testing/hook-sidecar.ts';
import { readFields, writeFields } from '../testing/protobuf-fields.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import type { Plugins } from './plugins.ts';
import { createPlugins } from './plugins.ts';

const MUTATE = '/kubevirt.hooks.plugins.v1alpha1.DomainHookService/MutateDomain';
const XML = '<domain><name>ns_vm</name></domain>';
const vmi = parseVmiJson(
  JSON.stringify({ metadata: { name: 'vm', namespace: 'ns', uid: '1' }, spec: { domain: { devices: {} } } }),
);
const lines: string[] = [];
const log = createLogger('virt-launcher', {
  destination: { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
});

let baseDir: string;
let plugins: Plugins;
let served: AsyncDisposable[] = [];
const socketOf = (plugin: string): string => join(baseDir, plugin, 'hook.sock');
const sidecar = (plugin: string, more: object = {}) => ({ sidecar: { socketPath: socketOf(plugin) }, ...more });
const pluginOf = (name: string, ...domainHooks: object[]) => ({ metadata: { name }, spec: { domainHooks } });

async function serve(plugin: string, method: SidecarMethods[string] | undefined): Promise<void> {
  served.push(await serveSidecar(socketOf(plugin), method === undefined ? {} : { [MUTATE]: method }));
}

/** Adds an element, so that the order of the changes can be seen. */
const add =
  (word: string): SidecarMethods[string] =>
  (request) =>
    writeFields([1, textOfField(request, 2).replace('</domain>', `<${word}/></domain>`)]);

interface Conditions {
  readonly condition?: string;
  readonly hook?: string;
}

beforeEach(() => {
  baseDir = mkdtempSync(join(tmpdir(), 'virtwire-plugins-'));
  served = [];
  lines.length = 0;
  plugins = createPlugins({ clock: systemClock, log, baseDir });
});

afterEach(async () => {
  for (const server of served) await server[Symbol.asyncDispose]();
  rmSync(baseDir, { recursive: true });
});

describe('the list of plugins', () => {
  test.each(['', 'null', '[]'])('"%s" clears it', async (json) => {
    plugins.set(JSON.stringify([pluginOf('a', sidecar('a'))]));
    plugins.set(json);
    expect(await plugins.apply(vmi, XML, 'Boot')).toBe(XML);
    expect(lines).toEqual([]);
  });

  test.each(['{', '{"a":1}', '[1]'])('%s is refused in the words of the model', (json) => {
    expect(() => plugins.set(json)).toThrow(/^failed to deserialize plugins from options: /);
  });
});

describe('plugins change a domain', () => {
  test('by their names, each by its hooks in order, and say so', async () => {
    await serve('a', add('first'));
    await serve('b', add('second'));
    const nodeHooks = [{ socket: '/x', permittedHooks: null }];
    plugins.set(
      JSON.stringify([
        pluginOf('b', sidecar('b')),
        { ...pluginOf('a', sidecar('a'), {}, sidecar('a')), kind: 'Plugin' },
        { metadata: { name: 'c' }, spec: { nodeHooks } },
      ]),
    );
    expect(await plugins.apply(vmi, XML, 'Boot')).toContain('<first/><first/><second/></domain>');
    expect(lines).toEqual([
      'Evaluating domain hooks from plugins: [a, b, c]',
      'Successfully applied domain hooks from 3 plugin(s)',
    ]);
  });

  test.each(['Boot', 'MigrationTarget'] as const)('and are told of it all for %s', async (context) => {
    const asked: unknown[] = [];
    await serve('a', (request) => {
      const nested = request.get(4)?.[0];
      asked.push(textOfField(request, 1), textOfField(request, 2), JSON.parse(textOfField(request, 3)));
      asked.push(Buffer.isBuffer(nested) ? textOfField(readFields(nested), 1) : undefined);
      return writeFields([1, XML]);
    });
    plugins.set(JSON.stringify([pluginOf('a', sidecar('a'))]));
    await plugins.apply(vmi, XML, context);
    expect(asked).toMatchObject(['libvirt', XML, { metadata: { name: 'vm' } }, context]);
  });

  test.each<[string, SidecarMethods[string] | undefined, object, RegExp]>([
    [
      'fails',
      () => Promise.reject(new Error('no')),
      {},
      /^plugin a hook 0 failed: MutateDomain RPC to a failed with Unknown: no$/,
    ],
    [
      'does not know the call',
      undefined,
      {},
      /^plugin a hook 0 failed: MutateDomain RPC to a failed with Unimplemented: /,
    ],
    [
      'hangs',
      () => new Promise<Buffer>(() => undefined),
      { timeout: '50ms' },
      /^plugin a hook 0 failed: MutateDomain RPC to a failed with DeadlineExceeded: context deadline exceeded$/,
    ],
    ['answers garbage', () => writeFields([1, 'x']), {}, /^plugin a hook 0 failed: unmarshal sidecar response: /],
    [
      'answers too much',
      () => writeFields([1, Buffer.alloc(5 * 1024 * 1024)]),
      {},
      /^plugin a hook 0 failed: MutateDomain RPC to a failed with ResourceExhausted: grpc: received message larger/,
    ],
  ])('unless one %s, which the failure strategy may allow', async (_what, method, more, text) => {
    await serve('a', method);
    await serve('b', add('b'));
    plugins.set(JSON.stringify([pluginOf('a', sidecar('a', more)), pluginOf('b', sidecar('b'))]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(text);
    const ignored = pluginOf('a', sidecar('a', { ...more, failureStrategy: 'Ignore' }));
    plugins.set(JSON.stringify([ignored, pluginOf('b', sidecar('b'))]));
    expect(await plugins.apply(vmi, XML, 'Boot')).toBe(XML.replace('</domain>', '<b/></domain>'));
    expect(lines.at(-2)).toMatch(/^Plugin a hook 0 failed \(ignored\): /);
    const whole = { metadata: { name: 'a' }, spec: { failureStrategy: 'Ignore', domainHooks: [sidecar('a', more)] } };
    plugins.set(JSON.stringify([whole]));
    expect(await plugins.apply(vmi, XML, 'Boot')).toBe(XML);
    plugins.set(
      JSON.stringify([
        { ...whole, spec: { ...whole.spec, domainHooks: [sidecar('a', { ...more, failureStrategy: 'Fail' })] } },
      ]),
    );
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(text);
  });

  test('a socket that appears later is waited for, half a minute at most', async () => {
    const clock = createFakeClock(0);
    const waiting = createPlugins({ clock, log, baseDir });
    waiting.set(JSON.stringify([pluginOf('a', sidecar('a'))]));
    await expect(clock.until(waiting.apply(vmi, XML, 'Boot'))).rejects.toThrow(
      `plugin a hook 0 failed: sidecar socket ${socketOf('a')} not ready after 30s: context deadline exceeded`,
    );
    expect(clock.now()).toBe(30_000);
    plugins.set(JSON.stringify([pluginOf('a', sidecar('a'))]));
    const applied = plugins.apply(vmi, XML, 'Boot');
    await serve('a', add('late'));
    expect(await applied).toContain('<late/>');
  });

  test.each<[string, (dir: string) => string, RegExp]>([
    ['the directory of another plugin', (dir) => join(dir, 'b/hook.sock'), /socket path ".*" is outside .*\/a\//],
    ['a way out', (dir) => join(dir, 'a') + '/../b/hook.sock', /socket path ".*" is outside .*\/a\//],
    ['the whole directory', (dir) => join(dir, 'a/'), /is outside/],
    ['a link', (dir) => join(dir, 'a/link'), /socket path ".*link" is a symlink, which is not allowed/],
    ['a link on the way', (dir) => join(dir, 'a/dir/hook.sock'), /is a symlink, which is not allowed/],
  ])('FM-13.1 only through its own socket, not %s', async (_what, path, text) => {
    await serve('b', add('b'));
    mkdirSync(join(baseDir, 'a'));
    symlinkSync(socketOf('b'), join(baseDir, 'a/link'));
    symlinkSync('../b', join(baseDir, 'a/dir'));
    plugins.set(JSON.stringify([pluginOf('a', { sidecar: { socketPath: path(baseDir) } })]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(text);
  });

  test('its expressions change the domain, in their order among the sidecars', async () => {
    await serve('a', add('between'));
    const cel = (expression: string): object => ({ cel: { expression } });
    const first = cel('Domain{Title: vmi.Name}');
    const last = cel('Domain{Title: domainSpec.Title + "-2", Description: "d"}');
    plugins.set(
      JSON.stringify([pluginOf('b', cel('Domain{Description: null == null ? "e" : ""}')), pluginOf('a', first, last)]),
    );
    const changed = await plugins.apply(vmi, XML, 'Boot');
    expect(changed.replace(/\n */g, '')).toContain('<title>vm-2</title><description>e</description></domain>');
    plugins.set(JSON.stringify([pluginOf('a', first, sidecar('a'))]));
    expect(await plugins.apply(vmi, XML, 'Boot')).toMatch(/<title>vm<\/title>\s*<between\/><\/domain>/);
  });

  test.each<[string, Conditions, string[]]>([
    ['of a whole plugin', { condition: 'vmi.Name == "other"' }, ['Skipping plugin a: condition not met']],
    ['of a hook', { hook: 'domainSpec.Title == "other"' }, []],
  ])('a condition %s that is not met leaves it out', async (_what, { condition, hook }, told) => {
    const change = { cel: { expression: 'Domain{Title: "x"}' }, ...(hook === undefined ? {} : { condition: hook }) };
    plugins.set(JSON.stringify([{ metadata: { name: 'a' }, spec: { condition, domainHooks: [change] } }]));
    expect(await plugins.apply(vmi, XML, 'Boot')).toBe(XML);
    expect(lines.slice(1, -1)).toEqual(told);
  });

  test('a later condition sees what was changed before', async () => {
    const hooks = [
      { cel: { expression: 'Domain{Title: "x"}' } },
      { cel: { expression: 'Domain{Description: "seen"}' }, condition: 'domainSpec.Title == "x"' },
    ];
    plugins.set(JSON.stringify([pluginOf('a', ...hooks)]));
    expect(await plugins.apply(vmi, XML, 'MigrationTarget')).toContain('<description>seen</description>');
  });

  test('a mutation that fails may be ignored; a condition that fails never', async () => {
    const wrong = { cel: { expression: 'Domain{Bogus: 1}' } };
    const text = /^plugin a hook 0 failed: compiling expression: ERROR: <input>:1:13: undefined field 'Bogus'\n/;
    plugins.set(JSON.stringify([pluginOf('a', wrong)]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(text);
    plugins.set(JSON.stringify([pluginOf('a', { ...wrong, failureStrategy: 'Ignore' })]));
    expect(await plugins.apply(vmi, XML, 'Boot')).toBe(XML);
    expect(lines.at(-2)).toMatch(/^Plugin a hook 0 failed \(ignored\): compiling expression: /);
    const ignoring = { failureStrategy: 'Ignore', domainHooks: [{ condition: 'vmi.Name' }] };
    plugins.set(JSON.stringify([{ metadata: { name: 'a' }, spec: ignoring }]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(
      'plugin a hook 0 condition evaluation failed: condition must return bool, got string',
    );
    plugins.set(JSON.stringify([{ metadata: { name: 'a' }, spec: { ...ignoring, condition: '1 / 0 == 1' } }]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(
      'plugin a condition evaluation failed: evaluating expression: division by zero',
    );
  });
});
