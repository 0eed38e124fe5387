import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errnoOf, HostError } from '../errors.ts';
import { SafePath } from './safe-path.ts';

let directory: string;
let root: string;

/** A pod's root with a secret beside it. */
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-safe-path-'));
  root = path.join(directory, 'root');
  fs.mkdirSync(path.join(root, 'etc/dir'), { recursive: true });
  fs.writeFileSync(path.join(root, 'etc/file'), 'inside');
  fs.writeFileSync(path.join(directory, 'secret'), 'outside');
});

afterEach(() => {
  fs.rmSync(directory, { recursive: true });
});

function failure(action: () => unknown): HostError {
  try {
    action();
  } catch (caught) {
    if (caught instanceof HostError) return caught;
    throw caught;
  }
  throw new Error('nothing was thrown');
}

function openDescriptors(): number {
  return fs.readdirSync('/proc/self/fd').length;
}

describe('a path without links', () => {
  test('goes down name by name', () => {
    using pod = SafePath.openRoot(root);
    using file = pod.join('/etc//./file');
    expect(file.readFile().toString()).toBe('inside');
    expect(file.display).toBe(`${root}/etc/file`);
    using same = pod.join('');
    expect(same.names()).toEqual(['etc']);
  });

  test.each([
    ['a link at the end', 'link'],
    ['a link on the way', 'way/file'],
    ['a link to the outside', 'out'],
    ['a dangling link', 'dangling'],
    ['two dots', 'etc/../etc/file'],
  ])('FM-13.1 refuses %s', (_what, relative) => {
    fs.symlinkSync('etc/file', path.join(root, 'link'));
    fs.symlinkSync('etc', path.join(root, 'way'));
    fs.symlinkSync('../secret', path.join(root, 'out'));
    fs.symlinkSync('nothing', path.join(root, 'dangling'));
    using pod = SafePath.openRoot(root);
    const before = openDescriptors();
    expect(failure(() => pod.join(relative)).code).toMatch(/UnsafePath|Syscall/);
    expect(openDescriptors()).toBe(before);
  });

  test('names what is missing', () => {
    using pod = SafePath.openRoot(root);
    const error = failure(() => pod.join('etc/nothing/more'));
    expect([error.code, error.errno]).toEqual(['Syscall', 'ENOENT']);
    expect(error.message).toContain(`${root}/etc/nothing`);
  });

  test('an absolute path is wanted where links are refused from the top', () => {
    expect(failure(() => SafePath.openNoFollow('etc')).code).toBe('UnsafePath');
    using file = SafePath.openNoFollow(path.join(fs.realpathSync(root), 'etc/file'));
    expect(file.stat().isFile()).toBe(true);
  });

  test('stays with what it opened when the name is swapped for a link', () => {
    using pod = SafePath.openRoot(root);
    using dir = pod.join('etc/dir');
    fs.renameSync(path.join(root, 'etc/dir'), path.join(root, 'etc/moved'));
    fs.symlinkSync(directory, path.join(root, 'etc/dir'));
    dir.touch('made', 0o600);
    expect(fs.readdirSync(path.join(root, 'etc/moved'))).toEqual(['made']);
    expect(fs.existsSync(path.join(directory, 'made'))).toBe(false);
  });
});

describe('a path resolved inside a root', () => {
  test.each([
    ['a relative link', 'relative', 'etc/file', 'inside'],
    ['an absolute link, from the root on', 'absolute', '/etc/file', 'inside'],
    ['dots that end at the root', 'dots', '../../../../etc/file', 'inside'],
    ['a link to a link', 'second', 'first', 'inside'],
  ])('follows %s', (_what, name, target, content) => {
    fs.symlinkSync('/etc/../etc/file', path.join(root, 'first'));
    fs.symlinkSync(target, path.join(root, name));
    using pod = SafePath.openRoot(root);
    using file = pod.resolve(name);
    expect(file.readFile().toString()).toBe(content);
  });

  test('FM-13.1 does not reach a file beside the root', () => {
    fs.symlinkSync('../secret', path.join(root, 'out'));
    fs.symlinkSync(path.join(directory, 'secret'), path.join(root, 'absolute'));
    using pod = SafePath.openRoot(root);
    for (const name of ['out', 'absolute', '../secret', '/../../secret']) {
      expect(failure(() => pod.resolve(name)).errno).toBe('ENOENT');
    }
  });

  test('gives up after 256 elements', () => {
    fs.symlinkSync('b', path.join(root, 'a'));
    fs.symlinkSync('a', path.join(root, 'b'));
    using pod = SafePath.openRoot(root);
    const before = openDescriptors();
    const error = failure(() => pod.resolve('a'));
    expect(error.code).toBe('TooManyLinks');
    expect(openDescriptors()).toBe(before);
    using long = pod.resolve(Array.from({ length: 255 }, () => '..').join('/'), 'etc');
    expect(long.isDirectory()).toBe(true);
  });

  test('whatever the links, it ends inside the root or fails', () => {
    const part = fc.constantFrom('..', '.', 'etc', 'dir', 'file', 'l0', 'l1', 'l2', '');
    const target = fc
      .tuple(fc.boolean(), fc.array(part, { maxLength: 6 }))
      .map(([abs, p]) => (abs ? '/' : '') + p.join('/'));
    const property = fc.property(fc.array(target, { minLength: 3, maxLength: 3 }), target, (targets, wanted) => {
      const tree = fs.mkdtempSync(path.join(directory, 'tree-'));
      fs.mkdirSync(path.join(tree, 'etc/dir'), { recursive: true });
      fs.writeFileSync(path.join(tree, 'etc/file'), '');
      targets.forEach((t, i) => fs.symlinkSync(t === '' ? '.' : t, path.join(tree, `l${i}`)));
      using pod = SafePath.openRoot(tree);
      try {
        using found = pod.resolve(wanted);
        const real = fs.readlinkSync(found.procPath);
        expect(real === tree || real.startsWith(`${tree}/`)).toBe(true);
      } catch (caught) {
        if (!(caught instanceof HostError)) throw caught;
        expect(['ENOENT', 'ENOTDIR', undefined]).toContain(caught.errno);
      }
    });
    fc.assert(property, { numRuns: 200 });
  });
});

describe('what is done through a path', () => {
  test.each(['', '.', '..', 'a/b', 'nul\0'])('a name like %j is refused', (name) => {
    using pod = SafePath.openRoot(root);
    for (const action of [() => pod.touch(name, 0o600), () => pod.mkdir(name, 0o700), () => pod.unlink(name)]) {
      expect(failure(action).code).toBe('UnsafePath');
    }
  });

  test('a file is made once, with its exact mode, and never through a link', () => {
    using pod = SafePath.openRoot(root);
    pod.touch('made', 0o666);
    expect(fs.statSync(path.join(root, 'made')).mode & 0o777).toBe(0o666);
    expect(errnoOf(failure(() => pod.touch('made', 0o666)))).toBe('EEXIST');
    fs.symlinkSync('../secret2', path.join(root, 'link'));
    expect(errnoOf(failure(() => pod.touch('link', 0o666)))).toBe('EEXIST');
    expect(fs.existsSync(path.join(directory, 'secret2'))).toBe(false);
  });

  test('FM-13.3 a replaced file takes the place of a link and leaves its target alone', () => {
    fs.symlinkSync('../secret', path.join(root, 'state'));
    using pod = SafePath.openRoot(root);
    pod.replaceFile('state', { content: 'new', mode: 0o604 });
    expect(fs.readFileSync(path.join(directory, 'secret'), 'utf8')).toBe('outside');
    expect(fs.lstatSync(path.join(root, 'state')).mode & 0o777).toBe(0o604);
    expect(fs.readdirSync(root)).toEqual(['etc', 'state']);
  });

  test('a file that cannot be put in place leaves no rest', () => {
    fs.mkdirSync(path.join(root, 'taken/x'), { recursive: true });
    using pod = SafePath.openRoot(root);
    expect(failure(() => pod.replaceFile('taken', { content: '', mode: 0o600 })).code).toBe('Syscall');
    expect(fs.readdirSync(root)).toEqual(['etc', 'taken']);
  });

  test('directories are made as far as they are missing', () => {
    using pod = SafePath.openRoot(root);
    using made = pod.ensureDirectory('etc/a/b', 0o750);
    expect(made.isDirectory()).toBe(true);
    using again = pod.ensureDirectory('etc/a/b', 0o750);
    expect(again.stat().ino).toBe(made.stat().ino);
    fs.symlinkSync('/tmp', path.join(root, 'etc/out'));
    expect(failure(() => pod.ensureDirectory('etc/out/x', 0o750)).code).toBe('UnsafePath');
  });

  test('only plain files of bounded size are read', () => {
    using pod = SafePath.openRoot(root);
    using dir = pod.join('etc');
    expect(failure(() => dir.readFile()).code).toBe('UnsafePath');
    using file = pod.join('etc/file');
    expect(failure(() => file.readFile(3)).message).toContain('over 3 bytes');
  });

  test('a closed path is not used, and closing twice is no error', () => {
    const pod = SafePath.openRoot(root);
    pod[Symbol.dispose]();
    pod[Symbol.dispose]();
    expect(failure(() => pod.names()).message).toContain('is closed');
  });
});
