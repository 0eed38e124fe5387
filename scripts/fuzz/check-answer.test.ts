import { CMD_RPCS } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { faultOfCmdAnswer } from './check-answer.ts';
import type { RawAnswer } from './raw-client.ts';

const refused = (message: string): RawAnswer => ({
  status: 0,
  text: '',
  message: Buffer.from(CMD_RPCS.Ping.response.encode({ success: false, message }).finish()),
});
const told = (status: number | undefined, text: string): RawAnswer => ({ status, text, message: Buffer.alloc(0) });

test.each<[string, Parameters<typeof faultOfCmdAnswer>, string | undefined]>([
  ['a refusal is an answer', ['Ping', refused('Domain not found.')], undefined],
  ['a failure without a word is none', ['Ping', refused('')], 'Ping answered with a failure without a word'],
  [
    'a program that has tripped shows',
    ['Ping', refused("Cannot read properties of null (reading 'x')")],
    "Ping answered Cannot read properties of null (reading 'x')",
  ],
  ['only some fail by a status', ['Ping', told(2, 'gone')], 'Ping answered with status 2: gone'],
  ['of those it is an answer', ['Exec', told(2, 'gone')], undefined],
  ['a call without a status has no answer', ['Exec', told(undefined, '')], 'Exec answered with status undefined: '],
])('%s', (_title, answer, fault) => {
  expect(faultOfCmdAnswer(...answer)).toBe(fault);
});
