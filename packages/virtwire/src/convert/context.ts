import type { CircumstancesJson, ConverterOptionsJson } from '@virtwire/launcher';
import type { KubeVirtConfiguration as NodeConfiguration } from '@virtwire/handler';
import type { KubeVirtConfiguration as DefaultsConfiguration } from '@virtwire/vm-model';
import { VirtwireError } from '../errors.ts';
import { count, flag, list, object, table, text } from '../manifest/rules.ts';
import type { Rule, RulesOf } from '../manifest/rules.ts';

/** The circumstances of a conversion, with what the node agent and the cluster add to them. */
export interface ConvertContext extends CircumstancesJson {
  /** Volumes that the node agent found to be preallocated. */
  readonly preallocatedVolumes?: readonly string[];
  /** NUMA topology of the host. */
  readonly topology?: ConverterOptionsJson['topology'];
  /** `spec.configuration` of the KubeVirt object. */
  readonly kubeVirtConfiguration?: NodeConfiguration & DefaultsConfiguration;
  /** UUID of the guest's firmware where the VMI has none and is to be completed. */
  readonly generatedFirmwareUUID?: string;
  /** The node agent is one of KubeVirt v1.0, whose options say less. */
  readonly olderHandler?: boolean;
}

const topology = object({
  numaCells: list(object({ id: count, cpus: list(object({ id: count, siblings: list(count) })) })),
});

const CONTEXT = object({
  hostArchitecture: text,
  allowEmulation: flag,
  hypervisorDeviceAvailable: flag,
  hypervisorName: text,
  allowCrossArchEmulation: flag,
  firmwareFilesPresent: flag,
  ovmfPath: text,
  firmwareAutoSelection: flag,
  podCPUSet: list(count),
  blockVolumes: list(text),
  containerDisks: table(object({ format: text, 'backing-filename': text })),
  applyCBT: table(text),
  env: table(text),
  networkInfo: object({
    interfaces: list(object({ network: text, deviceInfo: object({ pci: object({ 'pci-address': text }) }) })),
  }),
  preallocatedVolumes: list(text),
  topology,
  kubeVirtConfiguration: object({
    smbios: table(text),
    memBalloonStatsPeriod: count,
    virtualMachineOptions: object({ disableFreePageReporting: object(), disableSerialConsoleLog: object() }),
    network: object({ binding: table(object({ domainAttachmentType: text })) }),
    developerConfiguration: object({ featureGates: list(text), disabledFeatureGates: list(text) }),
    permittedHostDevices: object({
      pciHostDevices: list(object({ pciVendorSelector: text, resourceName: text })),
      mediatedDevices: list(object({ mdevNameSelector: text, resourceName: text })),
    }),
  }),
  generatedFirmwareUUID: text,
  olderHandler: flag,
} satisfies RulesOf<ConvertContext>);

const OPTIONS = object({
  VirtualMachineSMBios: object({ manufacturer: text, product: text, version: text, sku: text, family: text }),
  MemBalloonStatsPeriod: count,
  PreallocatedVolumes: list(text),
  topology,
  clusterConfig: table(flag),
  interfaceDomainAttachment: table(text),
  GraceHostDeviceAliases: list(text),
} satisfies RulesOf<ConverterOptionsJson>);

/** @throws {VirtwireError} `BadInput` with the field. */
export function checkContext(value: unknown): ConvertContext {
  return check(CONTEXT, value) as ConvertContext;
}

/** Checks a VirtualMachineOptions message in protobuf JSON. @throws {VirtwireError} `BadInput` with the field. */
export function checkOptions(value: unknown): ConverterOptionsJson {
  return check(OPTIONS, value) as ConverterOptionsJson;
}

function check(rule: Rule, value: unknown): unknown {
  const problems: string[] = [];
  rule((field, what) => problems.push(field === '' ? what : `${field}: ${what}`), '', value ?? 'nothing');
  const [problem] = problems;
  if (problem !== undefined) throw new VirtwireError('BadInput', problem);
  return withoutNulls(value);
}

/** As everywhere in this JSON, `null` means not set. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNulls(item)]])),
  );
}
