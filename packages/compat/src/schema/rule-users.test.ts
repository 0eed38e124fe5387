import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { followedRules } from '@virtwire/shared-proto/compat-rules';
import { expect, test } from 'vitest';

const PACKAGES = join(import.meta.dirname, '../../..');

const users = followedRules().flatMap(({ rule, user }) =>
  user !== undefined && 'file' in user ? [[rule, user.file, user.name] as const] : [],
);

test('most rules have code that follows them', () => {
  expect(users.length).toBeGreaterThan(followedRules().length / 2);
});

test.each(users)('the rule %s is followed by %s: %s', (_rule, file, name) => {
  const [owner = '', ...below] = file.split('/');
  const source = readFileSync(join(PACKAGES, owner, 'src', ...below), 'utf8');
  expect(source).toMatch(new RegExp(`\\b${name}\\b`));
});
