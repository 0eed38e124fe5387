import type { Domain, DomainEntry, Vmi } from '@virtwire/vm-model';

import type { ConverterContext } from './context.ts';

/** SMBIOS tables of the guest. */
export function configureSysinfo(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { firmware, chassis } = vmi.spec.domain;
  const { smbios } = context;
  const system: DomainEntry[] = [];
  if (firmware !== undefined) {
    system.push({ Name: 'uuid', Value: firmware.uuid ?? '' });
    if (firmware.serial) system.push({ Name: 'serial', Value: firmware.serial });
  }
  if (smbios !== undefined) {
    system.push(...entries(smbios, ['manufacturer', 'family', 'product', 'sku', 'version']));
  }
  domain.Spec.SysInfo = { Type: 'smbios' };
  if (system.length > 0) domain.Spec.SysInfo.System = system;
  if (chassis !== undefined) {
    domain.Spec.SysInfo.Chassis = entries(chassis, ['manufacturer', 'version', 'serial', 'asset', 'sku']);
  }
}

function entries<K extends string>(texts: Readonly<Partial<Record<K, string>>>, names: readonly K[]): DomainEntry[] {
  return names.map((name) => ({ Name: name, Value: texts[name] ?? '' }));
}
