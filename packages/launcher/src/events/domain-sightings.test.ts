import { expect, test } from 'vitest';
import { LIFECYCLE } from './domain-event.ts';
import { createDomainSightings } from './domain-sightings.ts';

type Name = keyof typeof LIFECYCLE;

test.each<[string, Name[], { hasCome: boolean; isGone: boolean }]>([
  ['a domain that was never seen is not gone', [], { hasCome: false, isGone: false }],
  ['one that is defined is there', ['defined'], { hasCome: true, isGone: false }],
  ['one that is off but defined is there', ['defined', 'started', 'stopped'], { hasCome: true, isGone: false }],
  [
    'one that is off and deleted is gone',
    ['defined', 'started', 'stopped', 'undefined'],
    { hasCome: true, isGone: true },
  ],
  [
    'one that runs without a definition is there',
    ['defined', 'started', 'undefined'],
    { hasCome: true, isGone: false },
  ],
  ['and gone once it is off', ['defined', 'started', 'undefined', 'stopped'], { hasCome: true, isGone: true }],
  ['an arriving one is there', ['started', 'suspended', 'resumed'], { hasCome: true, isGone: false }],
  ['one whose arrival has failed is gone', ['started', 'suspended', 'stopped'], { hasCome: true, isGone: true }],
  ['a crash alone does not take it away', ['started', 'crashed'], { hasCome: true, isGone: false }],
  ['one that is defined anew is there', ['defined', 'undefined', 'defined'], { hasCome: true, isGone: false }],
])('%s', (_title, names, expected) => {
  const sightings = createDomainSightings();
  for (const name of names) sightings.note({ domainName: 'ns_vm', lifecycle: { event: LIFECYCLE[name], detail: 0 } });
  sightings.note({ domainName: 'ns_vm', device: 'added' });
  expect({ hasCome: sightings.hasCome(), isGone: sightings.isGone() }).toEqual(expected);
});
