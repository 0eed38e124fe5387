import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { CMD_RPCS, type CmdRpc } from './cmd/rpcs.ts';
import { CmdInfoResponse } from './gen/kubevirt/cmd/info/info.ts';
import * as cmd from './gen/kubevirt/cmd/v1/cmd.ts';
import type { MessageFns } from './gen/kubevirt/cmd/v1/cmd.ts';
import { NotifyInfoResponse } from './gen/kubevirt/notify/info/info.ts';
import * as notify from './gen/kubevirt/notify/v1/notify.ts';
import { readRecordedMessages } from './testing/bundle.ts';

/** A message whose type does not matter to the test. */
type AnyMessage = MessageFns<object>;
const anyOf = <T>(message: MessageFns<T>): AnyMessage => message as unknown as AnyMessage;
const hexOf = (message: AnyMessage, value: object): string =>
  Buffer.from(message.encode(message.fromPartial(value)).finish()).toString('hex');

describe('bytes of the wire document', () => {
  test.each<[string, AnyMessage, object, string]>([
    ['CmdInfoResponse', anyOf(CmdInfoResponse), { supportedCmdVersions: [1] }, '0a0101'],
    ['NotifyInfoResponse', anyOf(NotifyInfoResponse), { supportedNotifyVersions: [1] }, '0a0101'],
    ['VMIRequest', anyOf(cmd.VMIRequest), { vmi: { vmiJson: Buffer.from('{}') }, options: {} }, '0a040a027b7d1200'],
    ['Response, success', anyOf(cmd.Response), { success: true }, '0801'],
    ['Response, failure', anyOf(cmd.Response), { message: 'x' }, '120178'],
    ['DomainResponse', anyOf(cmd.DomainResponse), { response: { success: true }, domain: '{}' }, '0a02080112027b7d'],
    ['CPU', anyOf(cmd.CPU), { id: 1, siblings: [0, 1] }, '080112020001'],
    [
      'ExecRequest',
      anyOf(cmd.ExecRequest),
      { domainName: 'a_b', Command: 'ls', Args: ['-l'], timeoutSeconds: 5 },
      '0a03615f6212026c731a022d6c2005',
    ],
    ['VMStatsRequest', anyOf(cmd.VMStatsRequest), { domainStats: {}, guestGetMemoryBlocks: {} }, '0a00820100'],
    [
      'DomainEventRequest',
      anyOf(notify.DomainEventRequest),
      { domainJSON: Buffer.from('{}'), eventType: 'MODIFIED' },
      '0a027b7d1a084d4f444946494544',
    ],
  ])('%s', (_name, message, value, hex) => {
    expect(hexOf(message, value)).toBe(hex);
    expect(message.decode(Buffer.from(hex, 'hex'))).toMatchObject(message.fromPartial(value));
  });

  test('siblings are taken unpacked as well', () => {
    expect(cmd.CPU.decode(Buffer.from('080110001001', 'hex')).siblings).toEqual([0, 1]);
  });
});

/** Messages by their names in the captures. */
const MESSAGES: Readonly<Record<string, AnyMessage>> = Object.fromEntries([
  ...Object.entries(cmd).map(([name, value]) => [`kubevirt.cmd.v1.${name}`, value] as const),
  ...Object.entries(notify).map(([name, value]) => [`kubevirt.notify.v1.${name}`, value] as const),
  ['kubevirt.cmd.info.CmdInfoResponse', CmdInfoResponse],
  ['kubevirt.notify.info.NotifyInfoResponse', NotifyInfoResponse],
]) as Record<string, AnyMessage>;

/** The one body that was sent to be no message. */
const NO_PROTOBUF = '////';

describe('recorded messages', () => {
  const bodies = readRecordedMessages()
    .flatMap(({ release, label, request, response }) => [request, response].map((body) => ({ release, label, body })))
    .filter(({ body }) => body !== undefined && body.base64 !== NO_PROTOBUF);

  test('there are many, of several releases', () => {
    expect(bodies.length).toBeGreaterThan(1_000);
    expect(new Set(bodies.map(({ release }) => release)).size).toBeGreaterThanOrEqual(4);
  });

  test('each one encodes to its own size again and decodes to the same values', () => {
    for (const { label, body } of bodies) {
      const message = MESSAGES[body?.type ?? ''];
      if (message === undefined) continue;
      const bytes = Buffer.from(body?.base64 ?? '', 'base64');
      const again = Buffer.from(message.encode(message.decode(bytes)).finish());
      // Maps have no order on the wire, so the bytes may be another permutation.
      expect(again.length, label).toBe(bytes.length);
      expect(message.decode(again), label).toEqual(message.decode(bytes));
    }
  });
});

describe('unknown fields', () => {
  test('of a newer peer survive decoding and encoding', () => {
    const newer = Buffer.concat([Buffer.from('0a040a027b7d1200', 'hex'), Buffer.from('9a0603616263a00605', 'hex')]);
    const again = cmd.VMIRequest.encode(cmd.VMIRequest.decode(newer)).finish();
    expect(Buffer.from(again).toString('hex')).toBe(newer.toString('hex'));
  });

  test('a field whose type has changed since v0.47 is skipped and kept', () => {
    // A VMIRequest with empty options, read as FreezeRequest.
    const old = Buffer.from('0a040a027b7d1200', 'hex');
    const request = cmd.FreezeRequest.decode(old);
    expect(request.unfreezeTimeoutSeconds).toBe(0);
    expect(Buffer.from(cmd.FreezeRequest.encode(request).finish()).toString('hex')).toBe(old.toString('hex'));
  });
});

describe('bytes that are no message', () => {
  test('give a message or an error, for every request', () => {
    const names = Object.keys(CMD_RPCS) as CmdRpc[];
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 100 }), (rpc, bytes) => {
        try {
          anyOf(CMD_RPCS[rpc].request as MessageFns<unknown>).decode(bytes);
        } catch (caught) {
          expect(caught).toBeInstanceOf(Error);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
