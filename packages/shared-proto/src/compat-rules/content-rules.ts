import type { Era } from './era.ts';

/** Where a rule's element is. */
export type RulePlace =
  | { readonly kind: 'field'; readonly message: string; readonly field: string }
  | { readonly kind: 'json'; readonly document: string; readonly key: string };

/** How a field or a JSON key is sent to peers of different ages. */
export interface ContentRule {
  readonly id: string;
  readonly place: RulePlace;
  readonly from: 'handler' | 'launcher';
  /** Peers that need it in this form; others ignore it, or cannot bear it if `elsewhere` says so. */
  readonly peers: Era;
  /** What is sent to those peers. */
  readonly send: string;
  /** What is sent to others. */
  readonly elsewhere: string;
  /** What the receiver does when it is absent. */
  readonly fallback: string;
  /** What a user would notice if the rule were not followed. */
  readonly effect: string;
}

const rule = (
  id: string,
  from: ContentRule['from'],
  place: RulePlace,
  peers: Era,
  words: Pick<ContentRule, 'send' | 'elsewhere' | 'fallback' | 'effect'>,
): ContentRule => ({ id, from, place, peers, ...words });
const option = (field: string): RulePlace => ({ kind: 'field', message: 'VirtualMachineOptions', field });
const domainKey = (key: string): RulePlace => ({ kind: 'json', document: 'Domain', key });
const migrationKey = (key: string): RulePlace => ({ kind: 'json', document: 'MigrationOptions', key });
const before = (until: string): Era => ({ since: undefined, until });
const ALL: Era = { since: undefined, until: undefined };

/**
 * Fields and keys that are not the same for every peer, handlers' first.
 *
 * @source wire rules 10.4 and 10.5, domain JSON section 5 and 8
 */
export const CONTENT_RULES = {
  disksInfo: rule('disksInfo', 'handler', option('DisksInfo'), before('v1.6.0'), {
    send: 'format, backing file, actual and virtual size of each container disk',
    elsewhere: 'an empty map; launchers from v1.6 look at the images themselves',
    fallback: 'the launcher keeps the last map that was not empty',
    effect: 'a VM with a container disk does not start: no disk info provided for volume',
  }),
  expandDisks: rule('expandDisks', 'handler', option('ExpandDisksEnabled'), before('v1.9.0'), {
    send: 'true, here and in clusterConfig',
    elsewhere: 'left out; growth is always on from v1.9',
    fallback: 'false',
    effect: 'disks stop growing online until the VM is migrated',
  }),
  vmi: rule('vmi', 'handler', { kind: 'field', message: 'VMIRequest', field: 'vmi' }, ALL, {
    send: 'always, even if empty',
    elsewhere: 'the same',
    fallback: 'a launcher written in Go crashes; ours answers success=false',
    effect: 'the launcher ends and the VM with it',
  }),
  options: rule('options', 'handler', { kind: 'field', message: 'VMIRequest', field: 'options' }, ALL, {
    send: 'always, even if empty, but with GetLaunchMeasurement and GetScreenshot',
    elsewhere: 'the same',
    fallback: 'FinalizeVirtualMachineMigration crashes a launcher from v1.2 on; ours goes on without',
    effect: 'the launcher of the migration target ends and the VM with it',
  }),
  acpiTableRead: rule(
    'acpiTableRead',
    'handler',
    domainKey('Spec.OS.ACPI.Table'),
    { since: 'v1.2.0', until: 'v1.6.0' },
    {
      send: 'nothing: read as one object',
      elsewhere: 'read as an array',
      fallback: 'no table',
      effect: 'a VM with an ACPI table shows as Unknown and its events are refused',
    },
  ),
  workloadDisruption: rule(
    'workloadDisruption',
    'launcher',
    migrationKey('AllowWorkloadDisruption'),
    before('v1.5.0'),
    {
      send: 'nothing: handlers before v1.5 leave it out, and AllowPostCopy is taken for it',
      elsewhere: 'read as it is',
      fallback: 'the value of AllowPostCopy',
      effect: 'a migration that stalls is neither paused nor switched to post-copy',
    },
  ),
  attachments: rule('attachments', 'launcher', option('interfaceDomainAttachment'), before('v1.1.1'), {
    send: 'nothing: handlers before v1.1.1 leave it out, and bridge and masquerade interfaces count as tap',
    elsewhere: 'read as it is',
    fallback: 'tap for bridge and masquerade',
    effect: 'a VM with a network does not start',
  }),
  migrationCompleted: rule(
    'migrationCompleted',
    'launcher',
    domainKey('Spec.Metadata.KubeVirt.Migration.Completed'),
    before('v1.6.0'),
    {
      send: 'true once the migration has ended well, as an extra key',
      elsewhere: 'the same; handlers from v1.6 ignore it',
      fallback: 'the migration does not count as completed',
      effect: 'the source handler never sees the end of a migration',
    },
  ),
  noNullAlias: rule('noNullAlias', 'launcher', domainKey('Spec.Devices.*.Alias'), ALL, {
    send: 'an object for every interface and disk, with empty text if there is none',
    elsewhere: 'the same',
    fallback: 'null crashes a handler written in Go',
    effect: 'virt-handler of the node crashes again and again',
  }),
  noNullMac: rule('noNullMac', 'launcher', domainKey('Spec.Devices.Interfaces.MAC'), ALL, {
    send: 'an object for every interface, with empty text if there is none',
    elsewhere: 'the same',
    fallback: 'null crashes a handler written in Go',
    effect: 'virt-handler of the node crashes again and again',
  }),
  acpiTable: rule('acpiTable', 'launcher', domainKey('Spec.OS.ACPI.Table'), before('v1.6.0'), {
    send: 'one object, if there is one table and the handler is known to be that old',
    elsewhere: 'an array',
    fallback: 'no table',
    effect: 'the handler cannot read the domain: the VM shows as Unknown',
  }),
} as const satisfies Readonly<Record<string, ContentRule>>;
