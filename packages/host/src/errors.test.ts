import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errnoOf, HOST_ERROR_CODES, HostError } from './errors.ts';

test('the README explains exactly the codes that there are', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const listed = [...readme.matchAll(/^\| `(\w+)`/gm)].map((match) => match[1]);
  expect(listed.sort()).toEqual([...HOST_ERROR_CODES].sort());
});

test('what Node throws keeps its errno and becomes the cause', () => {
  const caught = Object.assign(new Error('no'), { code: 'ENOENT' });
  const error = HostError.from(caught, 'Syscall', 'open x');
  expect([error.code, error.errno, error.message, error.cause]).toEqual(['Syscall', 'ENOENT', 'open x: no', caught]);
  expect(HostError.from(error, 'Netlink', 'again')).toBe(error);
  expect([errnoOf(error), errnoOf(caught), errnoOf(new Error('x')), errnoOf('ENOENT')]).toEqual([
    'ENOENT',
    'ENOENT',
    undefined,
    undefined,
  ]);
});
