import type { ValuePlan } from './field-plan.ts';
import { VMI_PLAN } from './field-plan.ts';
import type { Vmi } from './vmi.ts';

/**
 * The fields of a VMI's `spec` that KubeVirt v1.9 does not have, as `spec.domain.cpu.core`: most often a typing error,
 * since nobody reads them. At most 100.
 */
export function unknownSpecFields(vmi: Vmi): readonly string[] {
  const found: string[] = [];
  if (VMI_PLAN.kind !== 'struct') return found;
  const spec = VMI_PLAN.fields.find(({ key }) => key === 'spec');
  if (spec !== undefined) collect(spec.value, vmi.spec, 'spec', found);
  return found;
}

const MAX_FOUND = 100;

function collect(plan: ValuePlan, value: unknown, path: string, found: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  if (plan.kind === 'list' || plan.kind === 'map') {
    for (const [key, item] of Object.entries(value)) {
      collect(plan.of, item, plan.kind === 'list' ? `${path}[${key}]` : `${path}.${key}`, found);
    }
  }
  if (plan.kind !== 'struct') return;
  const plans = new Map(plan.fields.map((field) => [field.key, field.value]));
  for (const [key, item] of Object.entries(value)) {
    const known = plans.get(key);
    if (known !== undefined) collect(known, item, `${path}.${key}`, found);
    else if (found.length < MAX_FOUND) found.push(`${path}.${key}`);
  }
}
