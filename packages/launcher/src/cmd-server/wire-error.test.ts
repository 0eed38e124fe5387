import { expect, test } from 'vitest';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { LauncherError } from '../errors.ts';
import { wireError } from './wire-error.ts';

/** The words that virt-freezer and the snapshot controller look for. */
const VSS_LIMIT = 'internal error: unable to execute QEMU agent command: fsfreeze is limited to 10 seconds';
const NO_AGENT = 'Guest agent is not responding: Guest agent not available for now';

test.each<[what: string, caught: unknown, text: string]>([
  [
    'the limit of a guest on being frozen reaches who waits for it unchanged',
    new LibvirtCallError(86, 10, VSS_LIMIT),
    `LibvirtError(Code=86, Domain=10, Message='${VSS_LIMIT}')`,
  ],
  [
    'an agent that is not there, too',
    new LibvirtCallError(86, 10, NO_AGENT),
    `LibvirtError(Code=86, Domain=10, Message='${NO_AGENT}')`,
  ],
  [
    "an error of libvirt within another keeps libvirt's own form",
    LauncherError.from(new LibvirtCallError(38, 10, 'gone'), 'BadRequest', 'failed to freeze: '),
    "failed to freeze: virError(Code=38, Domain=10, Message='gone')",
  ],
  ['any other is its text', new Error('Domain not found.'), 'Domain not found.'],
])('%s', (_what, caught, text) => {
  expect(wireError(caught).message).toBe(text);
});
