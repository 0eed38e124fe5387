import type { VmiCpu, VmiFeatureHyperv, VmiFeatureState, VmiSpec } from '../vmi/vmi.ts';

const DEFAULT_SPINLOCK_RETRIES = 4096;

/** Features and timers that are present are on unless they say otherwise; ACPI is on but for s390x. */
export function defaultFeatures(spec: VmiSpec): void {
  const features = (spec.domain.features ??= {});
  features.acpi ??= {};
  features.acpi.enabled ??= spec.architecture !== 's390x';
  for (const state of [features.apic, features.smm, features.pvspinlock]) enable(state);
  const { hyperv } = features;
  if (hyperv !== undefined) {
    for (const state of Object.values(hyperv) as (VmiFeatureState | undefined)[]) enable(state);
    for (const state of [hyperv.synictimer?.direct, hyperv.tlbflush?.direct, hyperv.tlbflush?.extended]) enable(state);
    if (hyperv.spinlocks?.enabled === true) hyperv.spinlocks.spinlocks ??= DEFAULT_SPINLOCK_RETRIES;
  }
  for (const timer of Object.values(spec.domain.clock?.timer ?? {}) as { present?: boolean }[]) timer.present ??= true;
}

/** Hyper-V features switch on what they need; a refused need is left to the validation that follows. */
export function requireHypervFeatures(spec: VmiSpec): void {
  const hyperv = spec.domain.features?.hyperv;
  if (hyperv === undefined) return;
  const needs: readonly (readonly [keyof VmiFeatureHyperv, 'vapic' | 'vpindex' | 'synic'])[] = [
    ['evmcs', 'vapic'],
    ['ipi', 'vpindex'],
    ['tlbflush', 'vpindex'],
    ['synictimer', 'synic'],
    ['synic', 'vpindex'],
  ];
  for (const [feature, need] of needs) {
    if (hyperv[feature]?.enabled !== true) continue;
    const needed = (hyperv[need] ??= {});
    needed.enabled ??= true;
    if (!needed.enabled) return;
  }
  if (hyperv.evmcs !== undefined && hyperv.evmcs.enabled !== false) requireVmx((spec.domain.cpu ??= {}));
}

function requireVmx(cpu: VmiCpu): void {
  const features = (cpu.features ??= []);
  const vmx = features.find((feature) => feature.name === 'vmx');
  if (vmx === undefined) features.push({ name: 'vmx', policy: 'require' });
  else vmx.policy = 'require';
}

function enable(state: VmiFeatureState | undefined): void {
  if (state !== undefined) state.enabled ??= true;
}
