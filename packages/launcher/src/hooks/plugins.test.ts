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

  test('CEL expressions are refused by name', async () => {
    plugins.set(JSON.stringify([pluginOf('a', { cel: { expression: 'Domain{}' } })]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(
      /^plugin a hook 0 failed: changes by CEL expressions are not supported by this launcher yet$/,
    );
    plugins.set(JSON.stringify([{ metadata: { name: 'a' }, spec: { condition: 'true' } }]));
    await expect(plugins.apply(vmi, XML, 'Boot')).rejects.toThrow(
      /^plugin a condition evaluation failed: CEL expressions are not supported by this launcher yet$/,
    );
  });
});
