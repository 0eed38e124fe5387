// Prints the libvirt domain that a launcher would define for a VirtualMachineInstance.
//
//   node convert-vmi.ts FILE.json
import { readFileSync } from 'node:fs';

import { circumstancesFromJson, convertVmi, resolveConverterContext } from '@virtwire/launcher';
import { applyVmiDefaults, clusterDefaults, parseVmiJson, renderDomainXml } from '@virtwire/vm-model';

const [file] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write('usage: node convert-vmi.ts FILE.json\n');
  process.exit(2);
}
const written = parseVmiJson(readFileSync(file, 'utf8'));
// What the API server would fill in for whatever the file leaves open.
const vmi = applyVmiDefaults(written, clusterDefaults('amd64'), '5d307ca9-b3ef-428c-8861-06e72d69f223');
// An ordinary node with KVM; taps are what the handler makes for bridge and masquerade interfaces.
const interfaces = vmi.spec.domain.devices.interfaces ?? [];
const attachment = Object.fromEntries(interfaces.map(({ name }) => [name, 'tap']));
const circumstances = circumstancesFromJson(vmi, {}, { interfaceDomainAttachment: attachment });
const domain = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
process.stdout.write(`${renderDomainXml(domain.Spec, { indent: '  ' })}\n`);
