import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Connection } from '@virtwire/libvirt';
import { connect, isLibvirtError } from '@virtwire/libvirt';
import { privateDaemonObstacle, startPrivateDaemon } from '@virtwire/libvirt/testing';
import { renderDomainXml } from '@virtwire/vm-model';
import { completeForLibvirt } from '../src/converter/complete-for-libvirt.ts';
import { convertVmi } from '../src/converter/convert.ts';
import { resolveConverterContext } from '../src/converter/resolve-context.ts';
import { createPluginExpressions } from '../src/hooks/cel/program.ts';
import { arbitraryConversion } from '../src/testing/arbitrary-vmi.ts';

const obstacle = privateDaemonObstacle();

/** Addresses of cards are made up each time; libvirtxml leaves out what an empty drive would be of. */
const INDIFFERENT = [
  /<mac address='[^']*'\/>/g,
  /type='\w+' (?=device='(?:cdrom|floppy)'>\s*<driver [^>]*>\s*<target )/g,
];

/** What libvirt makes of a domain, or why it does not. */
async function definedAs(connection: Connection, xml: string): Promise<string> {
  try {
    const domain = await connection.defineDomainXml(xml);
    const seen = await domain.getXmlDesc();
    await domain.undefine();
    return INDIFFERENT.reduce((text, part) => text.replace(part, ''), seen);
  } catch (error) {
    if (!isLibvirtError(error)) throw error;
    return error.message;
  }
}

describe.skipIf(obstacle !== undefined)(`libvirt sees no change where a plugin made none ${obstacle ?? ''}`, () => {
  test('of any VMI', { timeout: 300_000 }, async () => {
    await using daemon = await startPrivateDaemon();
    await using connection = await connect({ uri: daemon.uri, socketPath: daemon.socketPath });
    const version = await connection.getLibVersion();
    let defined = 0;
    await fc.assert(
      fc.asyncProperty(arbitraryConversion, async ({ vmi, circumstances }) => {
        const { Spec } = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
        const xml = renderDomainXml(completeForLibvirt(Spec, version));
        const untouched = createPluginExpressions(vmi).mutation('Domain{}', xml);
        const seen = await definedAs(connection, xml);
        expect(await definedAs(connection, untouched)).toBe(seen);
        if (seen.startsWith('<domain')) defined++;
      }),
      { numRuns: 200 },
    );
    expect(defined).toBeGreaterThan(80);
  });
});
