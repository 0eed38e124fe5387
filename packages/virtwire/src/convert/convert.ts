import { clusterConfig, syncOptions } from '@virtwire/handler';
import { circumstancesFromJson, convertVmi, countHotplugPorts, resolveConverterContext } from '@virtwire/launcher';
import type { ConverterOptionsJson } from '@virtwire/launcher';
import { applyVmiDefaults, clusterDefaults, replacePvcByHostDisk } from '@virtwire/vm-model';
import type { Domain, Vmi } from '@virtwire/vm-model';
import { checkOptions } from './context.ts';
import type { ConvertContext } from './context.ts';

/** What is converted, and under which circumstances. */
export interface ConvertInput {
  readonly vmi: Vmi;
  readonly context: ConvertContext;
  /** What the node agent sends along; undefined: what ours would send. */
  readonly options: ConverterOptionsJson | undefined;
  /** The VMI is as a client wrote it: complete it as admission and node agent do. */
  readonly isToComplete: boolean;
}

/**
 * The domain that a launcher would define for a VMI, before it adds what it finds in its pod.
 *
 * @throws {LauncherError} `ConvertFailed` with KubeVirt's message, also when the hotplug ports cannot be counted.
 * @throws {VmModelError} `InvalidVmi` when a claim cannot be a host disk.
 */
export function convert({ vmi: given, context: stated, options, isToComplete }: ConvertInput): Domain {
  // Without a word of the node it is one that the VMI fits on.
  const context = { hostArchitecture: given.spec.architecture ?? 'amd64', ...stated };
  const vmi = isToComplete ? complete(given, context) : given;
  const circumstances = circumstancesFromJson(vmi, context, options ?? nodeOptions(vmi, context));
  const domain = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
  // A launcher that cannot count them defines nothing.
  countHotplugPorts(vmi, domain.Spec);
  return domain;
}

function complete(vmi: Vmi, context: ConvertContext): Vmi {
  const cluster = clusterDefaults(context.hostArchitecture ?? 'amd64', context.kubeVirtConfiguration);
  vmi.metadata.namespace ||= 'default';
  return replacePvcByHostDisk(applyVmiDefaults(vmi, cluster, context.generatedFirmwareUUID ?? crypto.randomUUID()));
}

function nodeOptions(vmi: Vmi, context: ConvertContext): ConverterOptionsJson {
  const { kubeVirtConfiguration: configuration, preallocatedVolumes, topology } = context;
  const config = clusterConfig(configuration === undefined ? {} : { configuration });
  const sent = syncOptions(vmi, { config, topology: undefined, plugins: [] });
  // A node agent of v1.0 does not know these.
  if (context.olderHandler === true) {
    delete sent.clusterConfig;
    delete sent.interfaceDomainAttachment;
  }
  return {
    ...checkOptions(JSON.parse(JSON.stringify(sent, mapAsObject))),
    ...(preallocatedVolumes === undefined ? {} : { PreallocatedVolumes: preallocatedVolumes }),
    ...(topology === undefined ? {} : { topology }),
  };
}

/** Maps of a message travel as JSON objects. */
function mapAsObject(_key: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value as Map<string, unknown>) : value;
}
