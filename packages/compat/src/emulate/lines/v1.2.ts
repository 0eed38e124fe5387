import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_1 } from './v1.1.ts';

/** OS.ACPI.Table appears, as one object; Finalize needs its options. */
export const V1_2: LineFacts = {
  line: 'v1.2',
  release: fact('v1.2.2', 'releases.json lines v1.2 tags'),
  shared: {
    ...V1_1.shared,
    domainKeys: fact(
      { added: ['Interface.XMLName', 'OS.ACPI', 'MemoryTarget.Address'], removed: [] },
      'domain-json.md 8',
    ),
    acpiTable: fact('object', 'domain-json.md 8; wire.md 10.4'),
  },
  launcher: {
    ...V1_1.launcher,
    crashesWithoutFinalizeOptions: fact(true, 'releases.json eras.finalizeOptions; wire.md 11'),
    statsKeys: fact(['Cached', 'NrVirtCpu', 'Delay'], 'wire.md 9 DomainStats'),
    filesystemsHaveDisks: fact(true, 'wire.md 9 filesystem'),
  },
  handler: {
    ...V1_1.handler,
    finalizeOptions: fact('interfaceMigration', 'releases.json eras.finalizeOptions'),
  },
};
