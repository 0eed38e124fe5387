import { expect, test } from 'vitest';
import { missingParts } from './missing-parts.ts';
import type { NodeParts } from './parts.ts';

test('a part is missing until the node has it', () => {
  const none = {} as NodeParts;
  expect(missingParts(none)).toContain('migrationProxies');
  const proxies = { stopTarget: () => undefined, stopSource: () => undefined };
  expect(missingParts({ ...none, migrationProxies: proxies })).not.toContain('migrationProxies');
});
