import { crc32, deflateSync } from 'node:zlib';
import { ErrorDomain, ErrorNumber } from '../../gen/constants.gen.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError } from '../errors.ts';
import type { StreamSource } from '../server-stream.ts';
import { child, childrenOf } from '../xml.ts';
import { domainOf } from './context.ts';
import type { CallHandlers } from './context.ts';

const FORCE = 1;

/** Calls that open a stream. */
export const streamCalls: CallHandlers = {
  DOMAIN_SCREENSHOT: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    if (childrenOf(child(domain.current, 'devices'), 'video').length === 0) {
      throw daemonError(
        ErrorNumber.INTERNAL_ERROR,
        ErrorDomain.QEMU,
        'internal error: no screens to take a screenshot of',
      );
    }
    return { ret: { mime: 'image/png' }, source: bytesSource(blackPng(64, 48)) };
  },
  DOMAIN_OPEN_CONSOLE: (args, context) => {
    const domain = domainOf(args, context);
    return { ret: undefined, source: openConsole(domain, args.dev_name, args.flags) };
  },
  DOMAIN_OPEN_CHANNEL: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    return { ret: undefined, source: domain.console.source() };
  },
};

function openConsole(domain: FakeDomain, device: string | null, flags: number): StreamSource {
  domain.assertActive();
  const devices = child(domain.current, 'devices');
  const consoles = [...childrenOf(devices, 'console'), ...childrenOf(devices, 'serial')];
  const aliases = consoles.map((one) => child(one, 'alias')?.attributes['name']);
  if (consoles.length === 0 || (device !== null && !aliases.includes(device))) {
    const text = `internal error: cannot find character device ${device ?? '<null>'}`;
    throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.QEMU, text);
  }
  if (domain.console.isOpen && (flags & FORCE) === 0) {
    const text = 'operation failed: Active console session exists for this domain';
    throw daemonError(ErrorNumber.OPERATION_FAILED, ErrorDomain.QEMU, text);
  }
  return domain.console.source();
}

function bytesSource(bytes: Uint8Array): StreamSource {
  return {
    start: (peer) => {
      peer.send(bytes);
      peer.end();
    },
  };
}

/** A black picture that every PNG reader takes. */
function blackPng(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8; // bits per sample; colour type 0 is grey
  const rows = Buffer.alloc((width + 1) * height);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}
