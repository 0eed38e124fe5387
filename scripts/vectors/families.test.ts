import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { renderJson } from '@virtwire/vm-model';
import { afterAll, describe, expect, test } from 'vitest';
import { type Files, openFiles } from '../testdata/bundle.ts';
import { FAMILIES } from './families/index.ts';
import { runFamily } from './run.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const temporary = mkdtempSync(join(tmpdir(), 'virtwire-vectors-'));
afterAll(() => rmSync(temporary, { recursive: true }));

function dataOf(name: string): Files {
  return openFiles(join(ROOT, `testdata/${FAMILIES.get(name)?.data ?? name}.ndjson.br`));
}

async function run(name: string, files: Files): ReturnType<typeof runFamily> {
  const family = FAMILIES.get(name);
  if (family === undefined) throw new Error(`no family ${name}`);
  return runFamily(await family.load(), files);
}

/** The same files with some of them changed. */
function withText(files: Files, changes: Readonly<Record<string, (text: string) => string>>): Files {
  const text = (path: string): string => (changes[path] ?? ((same) => same))(files.text(path));
  return { ...files, text, json: (path) => (path in changes ? JSON.parse(text(path)) : files.json(path)) as unknown };
}

/** How many cases each family has; a family that is not here fails the test below. */
const COUNTS: Readonly<Record<string, number>> = {
  converter: 96,
  dhcp: 29,
  handler: 343,
  'handler-domains': 28,
  'handler-phase': 485,
  'host-disk': 9,
  'launcher-agent': 24,
  'launcher-cloudinit': 38,
  'launcher-events': 61,
  'launcher-migration': 56,
  'launcher-stats': 21,
  'launcher-sync': 168,
  libvirt: 97,
  'network-phase1': 82,
  'network-read': 12,
  'network-status': 20,
  'vmi-defaults': 95,
};

describe('our copies of the reference', () => {
  test.each([...FAMILIES.keys()])('all cases of %s pass', async (name) => {
    const { passed, failures } = await run(name, dataOf(name));
    expect(failures).toEqual([]);
    expect(passed).toBe(COUNTS[name]);
  });
});

describe('the runner notices', () => {
  test.each([
    [
      'another attribute',
      '002-container-disk/domain.xml',
      'error_policy="stop"',
      'error_policy="report"',
      /\/driver: expected attributes/,
    ],
    ['another text', '002-container-disk/domain.xml', '>hvm<', '>xen<', /\/type: expected text "xen", got "hvm"/],
    ['another element', '002-container-disk/domain.xml', 'serial', 'parallel', /\/devices: expected children/],
    [
      'another value of the domain JSON',
      '002-container-disk/domain.json',
      '"hvm"',
      '"xen"',
      /json\/Spec\/OS\/Type\/OS/,
    ],
    ['another key order', '002-container-disk/domain.json', '"Status":{"Status":"",', '"Status":{', /json\/Status/],
    [
      'another port count',
      '002-container-disk/ports.json',
      '"extraRootPorts":',
      '"extraRootPorts":1',
      /ports\/extraRootPorts/,
    ],
    [
      'another error',
      '123-err-sound/error.txt',
      'gus',
      'gush',
      /error: expected "invalid model: gush", got "invalid model: gus"/,
    ],
  ])('%s of a converter case', async (_what, path, from, to, message) => {
    const files = dataOf('converter');
    expect(files.text(path)).toContain(from);
    const { failures } = await run('converter', withText(files, { [path]: (text) => text.replaceAll(from, to) }));
    expect(failures.map(({ name }) => name)).toEqual([dirname(path)]);
    expect(failures[0]?.differences[0]).toMatch(message);
  });

  test('a converter case that should have failed', async () => {
    const files = dataOf('converter');
    const fixed = withText(files, { '123-err-sound/vmi.launcher.json': (text) => text.replace('gus', 'ich9') });
    const { failures } = await run('converter', fixed);
    expect(failures.map(({ differences }) => differences[0])).toEqual([
      'error: expected "invalid model: gus", got none',
    ]);
  });

  test('a converter case that should not have failed', async () => {
    const files = dataOf('converter');
    const broken = withText(files, { '001-minimal/context.json': (text) => text.replaceAll('true', 'false') });
    const { failures } = await run('converter', broken);
    expect(failures[0]?.differences[0]).toBe(
      'error: expected none, got "kvm not present and emulation is not allowed"',
    );
  });

  test.each([
    ['another mode of a file', '046-ignition', '"mode":"0o644"', '"mode":"0o600"', /^\/files\/.*data\.ign\/mode: /],
    ['another content of a file', '046-ignition', '3.0.0\\"}}"', '3.0.1\\"}}"', /^\/files\/.*data\.ign\/content: /],
    [
      'a file that stays',
      '074-detach-cbt-overlay',
      '"filesRemoved":["/',
      '"filesRemoved":["/var/run","/',
      /^\/files\/var\/run: expected it/,
    ],
    ['another answer', '122-pause-no-domain', 'Domain not found.', 'Domain is gone.', /^\/0\/answer: /],
    ['another number of CPUs', '104-cpus-error', '"vcpus":2', '"vcpus":3', /^\/0\/calls\/0\/vcpus: expected 3, got 2/],
    ['another host CPU', '106-cpus-dedicated-stale', '"cpus":[2]', '"cpus":[3]', /^\/0\/calls\/1\/cpus\/0: /],
    ['another size of memory', '113-memory-update', '2147483648</requested>', '1</requested>', /^\/0\/calls\/0\/xml: /],
  ])('%s of a launcher case', async (_what, name, from, to, message) => {
    const files = dataOf('launcher-sync');
    const one = { ...files, paths: files.paths.filter((path) => path.startsWith(`${name}/`)) };
    const path = `${name}/output.json`;
    expect(files.text(path)).toContain(from);
    expect((await run('launcher-sync', one)).failures).toEqual([]);
    const { failures } = await run('launcher-sync', withText(one, { [path]: (text) => text.replace(from, to) }));
    expect(failures[0]?.differences[0]).toMatch(message);
  });

  test('a wrong phase', async () => {
    const files = withText(dataOf('handler-phase'), {
      'table.json': (text) => text.replace('"result":"Scheduled"', '"result":"Failed"'),
    });
    const { passed, failures } = await run('handler-phase', files);
    expect(passed).toBe(484);
    expect(failures[0]?.differences[0]).toContain('got phase "Scheduled"');
  });

  test('a wrong value and a wrong byte of a packet', async () => {
    const wrongValue = withText(dataOf('libvirt'), {
      'vectors.json': (text) => text.replace('"feature":10', '"feature":11'),
    });
    expect((await run('libvirt', wrongValue)).failures[0]?.differences).toEqual([
      '/body/feature: expected "11", got "10"',
    ]);
    const wrongByte = withText(dataOf('libvirt'), {
      'vectors.json': (text) => text.replace('"hex":"0000001c2000', '"hex":"0000001d2000'),
    });
    expect((await run('libvirt', wrongByte)).failures[0]?.differences[0]).toContain('threw ');
  });
});

describe('npm run vectors', () => {
  const vectors = async (...args: readonly string[]): Promise<{ code: number; out: string; err: string }> => {
    const command = ['-C', '@virtwire/source', join(ROOT, 'scripts/vectors/main.ts'), ...args];
    try {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, command);
      return { code: 0, out: stdout, err: stderr };
    } catch (caught) {
      const { code, stdout, stderr } = caught as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, err: stderr };
    }
  };

  test('without a folder runs our copy and ends with the count', async () => {
    expect(await vectors('libvirt')).toEqual({ code: 0, out: '97 passed, 0 failed\n', err: '' });
  });

  test('runs any folder of that layout; one line per case that differs, exit code 1', async () => {
    const folder = join(temporary, 'converter');
    const files = dataOf('converter');
    for (const path of files.paths.filter((p) => /^(001-minimal|123-err-sound)\//.test(p))) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), path.endsWith('.json') ? renderJson(files.json(path)) : files.text(path));
    }
    expect(await vectors('converter', folder)).toEqual({ code: 0, out: '2 passed, 0 failed\n', err: '' });
    cpSync(join(folder, '001-minimal'), join(folder, '002-copy'), { recursive: true });
    writeFileSync(join(folder, '002-copy/error.txt'), 'some error');
    expect(await vectors('converter', folder)).toEqual({
      code: 1,
      out: '002-copy: error: expected "some error", got none\n2 passed, 1 failed\n',
      err: '',
    });
  });

  test.each([
    ['no family', []],
    ['an unknown family', ['nothing']],
    ['a missing folder', ['converter', join(temporary, 'missing')]],
    ['too many arguments', ['converter', temporary, 'more']],
    ['a folder without cases', ['converter', temporary]],
  ])('with %s says what it knows and exits 2', async (_what, args) => {
    mkdirSync(temporary, { recursive: true });
    const { code, err } = await vectors(
      ...(args.includes(temporary) ? [args[0] ?? '', mkdtempSync(join(temporary, 'e-')), ...args.slice(2)] : args),
    );
    expect(code).toBe(2);
    expect(err).toContain('families: converter, ');
  });
});
