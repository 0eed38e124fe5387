import type { VirtualMachineOptions } from '../gen/kubevirt/cmd/v1/cmd.ts';
import type { Era } from './era.ts';

/** Something seen on the wire that tells a peer's age. `key` is looked for in JSON texts, in quotes with its colon. */
interface Sign {
  readonly key: string;
  /** First release that prints it. */
  readonly since: string;
  /** First release that does not print it any more. */
  readonly until?: string;
}

/**
 * Keys that every domain JSON of a release has, whatever the VM: a missing one tells as much as one that is there.
 *
 * @source domain JSON by release, the keys of DomainSpec, Devices and KubeVirtMetadata that are never left out
 */
const DOMAIN_SIGNS: readonly Sign[] = [
  { key: 'VCPUs', since: 'v1.0.0' },
  { key: 'CurrentMemory', since: 'v1.1.0' },
  { key: 'PanicDevices', since: 'v1.6.0' },
  { key: 'OnReboot', since: 'v1.8.0' },
  { key: 'IOMMUFD', since: 'v1.9.0' },
];

/** Shapes that only some domains have. A domain that does not show one says nothing. */
const SHAPES: readonly { readonly text: string; readonly era: Era }[] = [
  { text: '"ACPI":{"Table":{', era: { since: 'v1.2.0', until: 'v1.6.0' } },
  { text: '"ACPI":{"Table":[', era: { since: 'v1.6.0', until: undefined } },
  { text: '"creationTimestamp":null', era: { since: undefined, until: 'v1.8.0' } },
  { text: '"Watchdogs":', era: { since: 'v1.1.0', until: undefined } },
];

/**
 * The bounds that a domain JSON sets. Quotes within strings are escaped in JSON, so nothing a guest says can look like
 * a key.
 */
export function erasOfDomainJson(json: string): readonly Era[] {
  if (!json.includes('"Spec":{')) return [];
  return [
    ...DOMAIN_SIGNS.map(({ key, since }): Era =>
      json.includes(`"${key}":`) ? { since, until: undefined } : { since: undefined, until: since },
    ),
    ...SHAPES.filter(({ text }) => json.includes(text)).map(({ era }) => era),
  ];
}

/**
 * The bounds that the options of a sync set on the handler that sent them. Few fields tell an upper bound, so that most
 * handlers may be of any newer release.
 *
 * @source wire rules 5 and 10.5
 */
export function erasOfOptions(options: VirtualMachineOptions): readonly Era[] {
  const { clusterConfig: cluster } = options;
  const seen: readonly (readonly [boolean, Era])[] = [
    [options.DisksInfo.size > 0, { since: 'v0.46.0', until: 'v1.6.0' }],
    [options.interfaceDomainAttachment.size > 0, { since: 'v1.1.1', until: undefined }],
    [cluster?.PCINUMAAwareTopologyEnabled === true, { since: 'v1.8.0', until: undefined }],
    [options.pluginsJson.length > 0, { since: 'v1.9.0', until: undefined }],
    [options.GraceHostDeviceAliases.length > 0, { since: 'v1.9.0', until: undefined }],
  ];
  return seen.filter(([isSeen]) => isSeen).map(([, era]) => era);
}

/**
 * Versions of gRPC that releases were built with: those of an entry and newer ones, up to the next entry, tell the era.
 * A release is patched with newer versions while it lives, never with older ones.
 *
 * @source releases by line, grpcGo of each line's first and last tag
 */
const GRPC_VERSIONS: readonly { readonly from: readonly [number, number]; readonly era: Era }[] = [
  { from: [1, 0], era: { since: undefined, until: 'v1.1.1' } },
  { from: [1, 50], era: { since: 'v1.1.0', until: 'v1.3.0' } },
  { from: [1, 57], era: { since: 'v1.2.0', until: 'v1.4.0' } },
  { from: [1, 59], era: { since: 'v1.3.0', until: 'v1.7.0' } },
  { from: [1, 66], era: { since: 'v1.6.0', until: undefined } },
  { from: [1, 76], era: { since: 'v1.7.0', until: undefined } },
];

/** The bounds that a peer's user agent sets, `grpc-go/1.58.3`; peers that are not written in Go set none. */
export function erasOfUserAgent(userAgent: string | undefined): readonly Era[] {
  const [, major, minor] = /^grpc-go\/(\d+)\.(\d+)/.exec(userAgent ?? '') ?? [];
  if (major === undefined || minor === undefined) return [];
  const isReached = ([from, least]: readonly [number, number]): boolean =>
    Number(major) > from || (Number(major) === from && Number(minor) >= least);
  const entry = GRPC_VERSIONS.findLast(({ from }) => isReached(from));
  return entry === undefined ? [] : [entry.era];
}
