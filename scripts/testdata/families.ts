/** One set of reference data that tests need. */
export interface Family {
  readonly name: string;
  /** Folder or file below the source. */
  readonly from: string;
  /**
   * `bundle`: all files in one Brotli-compressed NDJSON file, `testdata/<name>.ndjson.br`;
   * `minified`: one JSON file without white space, at `to` below the repository.
   */
  readonly form: 'bundle' | 'minified';
  readonly to?: string;
}

function vectors(name: string): Family {
  return { name, from: `vectors/${name}`, form: 'bundle' };
}

/** Everything that `refresh.ts` copies. To add a family, add a line and run it. */
export const FAMILIES: readonly Family[] = [
  vectors('converter'),
  vectors('dhcp'),
  vectors('handler'),
  vectors('handler-domains'),
  vectors('handler-phase'),
  vectors('host-disk'),
  vectors('launcher-agent'),
  vectors('launcher-cloudinit'),
  vectors('launcher-events'),
  vectors('launcher-migration'),
  vectors('launcher-stats'),
  vectors('launcher-sync'),
  vectors('network-phase1'),
  vectors('network-read'),
  vectors('network-sequences'),
  vectors('network-status'),
  { name: 'libvirt', from: 'libvirt/vectors.json', form: 'bundle' },
  { name: 'wire-history', from: 'wire/history.json', form: 'bundle' },
  { name: 'wire-releases', from: 'wire/releases.json', form: 'bundle' },
  { name: 'wire-samples', from: 'wire/samples', form: 'bundle' },
  { name: 'captures', from: 'captures', form: 'bundle' },
  {
    name: 'domain-json-schema',
    from: 'wire/domain-json.schema.json',
    form: 'minified',
    to: 'packages/vm-model/protocol/domain-json.schema.json',
  },
];

/** Where a family lies in the repository. */
export function targetOf(family: Family): string {
  return family.to ?? `testdata/${family.name}.ndjson.br`;
}
