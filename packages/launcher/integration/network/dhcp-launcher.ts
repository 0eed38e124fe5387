// A process in the place of the launcher: network phase 2 in the pod's namespace, as uid 107 with nothing but
// CAP_NET_BIND_SERVICE. Arguments: private directory, resolv.conf, the VMI as JSON. Ends with its standard input.
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import { createGuestNetwork } from '../../src/network/guest-network.ts';

const [privateDir = '', resolvConfPath = '', vmiJson = ''] = process.argv.slice(2);
const vmi = parseVmiJson(vmiJson);
const network = createGuestNetwork(
  { log: createLogger('virt-launcher'), onFailure: (error) => process.stderr.write(`${error.message}\n`) },
  { privateDir, resolvConfPath, hostname: 'virt-launcher-testvmi' },
);
const interfaces = await network.prepare(vmi, [{ Alias: { Name: 'default' } }], { default: 'tap' });
process.stdout.write(`${JSON.stringify({ interfaces, uid: process.getuid?.() })}\n`);
process.stdin.resume();
await new Promise((resolve) => process.stdin.once('end', resolve));
await network.close();
