import { parseDomainJson } from '../domain/json-reader.ts';
import { renderDomainJson } from '../domain/json-writer.ts';
import { emptyDomain } from '../domain/zero.ts';
import type { Domain } from '../gen/domain-types.gen.ts';
import { parseVmiJson, renderVmiJson } from '../vmi/json.ts';
import type { Vmi } from '../vmi/vmi.ts';
import { backupCheckpoint, backupOptions } from './backup.ts';
import { domainStats } from './domain-stats.ts';
import { guestFilesystems, guestInfo, guestUsers } from './guest.ts';
import { kubernetesEvent, kubernetesStatus } from './kubernetes.ts';
import { migrationOptions } from './migration-options.ts';
import { plugins } from './plugin.ts';
import { sevMeasurementInfo, sevPlatformInfo, sevSecretOptions } from './sev.ts';
import type { Payload } from './struct.ts';

const vmi: Payload<Vmi> = {
  parse: parseVmiJson,
  render: renderVmiJson,
  zero: () => parseVmiJson('{}'),
};
const domain: Payload<Domain> = {
  parse: parseDomainJson,
  render: (value) => renderDomainJson(value),
  zero: emptyDomain,
};

/** The JSON document in each string or bytes field of the wire that holds one, by message and field. */
export const EMBEDDED = {
  'VMI.vmiJson': vmi,
  'MigrationRequest.options': migrationOptions,
  'InjectLaunchSecretRequest.options': sevSecretOptions,
  'BackupRequest.options': backupOptions,
  'RedefineCheckpointRequest.checkpoint': backupCheckpoint,
  'VirtualMachineOptions.pluginsJson': plugins,
  'DomainResponse.domain': domain,
  'DomainStatsResponse.domainStats': domainStats,
  'GuestInfoResponse.guestInfoResponse': guestInfo,
  'GuestUserListResponse.guestUserListResponse': guestUsers,
  'GuestFilesystemsResponse.guestFilesystemsResponse': guestFilesystems,
  'SEVInfoResponse.sevInfo': sevPlatformInfo,
  'LaunchMeasurementResponse.launchMeasurement': sevMeasurementInfo,
  'DomainEventRequest.domainJSON': domain,
  'DomainEventRequest.statusJSON': kubernetesStatus,
  'K8sEventRequest.eventJSON': kubernetesEvent,
} as const;

/** A field of the wire that holds JSON: `Message.field`. */
export type EmbeddedField = keyof typeof EMBEDDED;

/** The document of a field. */
export type EmbeddedValue<F extends EmbeddedField> = ReturnType<(typeof EMBEDDED)[F]['zero']>;

/**
 * Reads the document of a field.
 *
 * @param content as the message holds it, text or bytes.
 * @returns undefined for an empty field, which on the wire is the same as an absent one.
 * @throws {VmModelError} `InvalidJson`, with Go's words.
 */
export function readEmbedded<F extends EmbeddedField>(
  field: F,
  content: string | Uint8Array,
): EmbeddedValue<F> | undefined {
  const source = typeof content === 'string' ? content : Buffer.from(content).toString('utf8');
  if (source === '') return undefined;
  return EMBEDDED[field].parse(source) as EmbeddedValue<F>;
}

/** Prints the document of a field as Go does. */
export function printEmbedded<F extends EmbeddedField>(field: F, value: EmbeddedValue<F>): string {
  return (EMBEDDED[field] as unknown as Payload<EmbeddedValue<F>>).render(value);
}
