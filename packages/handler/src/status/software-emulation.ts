import type { ClusterConfig } from '../cluster-config.ts';
import type { Condition, Domain, Vmi } from '../model.ts';
import { findCondition, makeCondition, withoutCondition } from './conditions.ts';

const TYPE = 'SoftwareEmulation';

/**
 * Condition `SoftwareEmulation` of a guest whose architecture is not the node's.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateSoftwareEmulationCondition)
 */
export function emulationConditions(
  vmi: Vmi,
  conditions: readonly Condition[],
  domain: Domain | undefined,
  context: { readonly config: ClusterConfig; readonly hostArchitecture: string; readonly now: string },
): readonly Condition[] {
  const { config, hostArchitecture, now } = context;
  if (domain === undefined || !config.isGateOn('CrossArchitectureVirtualization')) return conditions;
  const guest = vmi.spec.architecture ?? hostArchitecture;
  if (domain.Spec.Type !== 'qemu' || guest === hostArchitecture) return withoutCondition(conditions, TYPE);
  if (findCondition(conditions, TYPE) !== undefined) return conditions;
  const message = `VM running with software emulation (host=${hostArchitecture}, guest=${guest})`;
  const times = { lastProbeTime: now, lastTransitionTime: now };
  return [...conditions, makeCondition(TYPE, 'True', { ...times, reason: 'CrossArchitectureEmulation', message })];
}
