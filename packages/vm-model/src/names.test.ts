import { expect, test } from 'vitest';
import { domainName, splitDomainName } from './names.ts';

test.each([
  ['team-a_vm', 'team-a', 'vm'],
  ['a_b_c', 'a', 'b_c'],
  ['lonely', 'default', 'lonely'],
])('the domain %s belongs to namespace %s, name %s', (text, namespace, name) => {
  expect(splitDomainName(text)).toEqual({ namespace, name });
});

test('a name made of both parts splits into them again', () => {
  expect(splitDomainName(domainName('team-a', 'vm.1'))).toEqual({ namespace: 'team-a', name: 'vm.1' });
});
