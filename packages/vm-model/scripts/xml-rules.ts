/**
 * What the JSON schema cannot say about the XML form: which values are written although they are empty,
 * and which elements carry a name or namespace of their own.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go (the xml tags without omitempty)
 */
export const XML_ALWAYS: Readonly<Record<string, readonly string[]>> = {
  DomainSpec: ['Type', 'Name'],
  Memory: ['Value', 'Unit'],
  MaxMemory: ['Value', 'Unit', 'Slots'],
  VCPU: ['CPUs'],
  IOThreads: ['IOThreads'],
  VCPUsVCPU: ['ID'],
  CPUTuneVCPUPin: ['VCPU', 'CPUSet'],
  CPUTuneIOThreadPin: ['IOThread', 'CPUSet'],
  CPUEmulatorPin: ['CPUSet'],
  MemNode: ['CellID', 'Mode', 'NodeSet'],
  NUMACell: ['ID'],
  NUMACellSibling: ['ID', 'Value'],
  Interface: ['Type'],
  Disk: ['Device', 'Type'],
  Watchdog: ['Model', 'Action'],
  Input: ['Type', 'Bus'],
  FilesystemSource: ['Dir'],
  BootOrder: ['Order'],
  ACPI: ['Index'],
  Alias: ['Name'],
  Stats: ['Period'],
  Entry: ['Name'],
  Env: ['Name', 'Value'],
  Arg: ['Value'],
  InterfacePortForwardRange: ['Start'],
  DiskIOThread: ['Id'],
  SliceType: ['Offset', 'Size'],
  PCIHole64: ['Value'],
  MemoryTarget: ['Node'],
  KubeVirtMetadata: ['UID'],
  GracePeriodMetadata: ['DeletionGracePeriodSeconds'],
};

/** Where the schema describes an XML place in words. */
export const XML_PATHS: Readonly<Record<string, string>> = {
  'Metadata.KubeVirt': 'kubevirt',
  'Alias.Name': '@name',
};

/** Elements that open an XML namespace. */
export const XML_NAMESPACES: Readonly<Record<string, string>> = { 'Metadata.KubeVirt': 'http://kubevirt.io' };

/** Types that start as a value in every domain, so that their users need no optional chaining. */
export const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  DomainSpec: ['Memory', 'OS', 'Devices', 'Metadata', 'CPU'],
  OS: ['Type'],
  Metadata: ['KubeVirt'],
  DomainStatus: ['OSInfo', 'FSFreezeStatus'],
};

/** Keys that a current Go reader ignores and an older one needs; printed only when set. */
export const EXTRA_FIELDS: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  MigrationMetadata: [['Completed', 'bool']],
};
