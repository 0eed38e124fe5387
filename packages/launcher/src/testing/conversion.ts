import {
  type DomainSpec,
  type Vmi,
  type VmiDomain,
  type VmiSpec,
  applyVmiDefaults,
  clusterDefaults,
} from '@virtwire/vm-model';

import {
  type CircumstancesJson,
  type ConverterOptionsJson,
  circumstancesFromJson,
} from '../converter/circumstances-json.ts';
import type { Circumstances } from '../converter/circumstances.ts';
import { convertVmi } from '../converter/convert.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';

/** What a test changes about an ordinary VMI and node. */
export interface ConversionChange {
  readonly domain?: Partial<VmiDomain>;
  readonly spec?: Partial<Omit<VmiSpec, 'domain'>>;
  readonly annotations?: Record<string, string>;
  readonly status?: NonNullable<Vmi['status']>;
  readonly context?: CircumstancesJson;
  readonly options?: ConverterOptionsJson;
  readonly circumstances?: Partial<Circumstances>;
}

/** A VMI with 1 GiB and defaults applied, with a change. */
export function vmiWith({ domain, spec, annotations, status, context }: ConversionChange): Vmi {
  const vmi: Vmi = {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u', ...(annotations === undefined ? {} : { annotations }) },
    spec: { ...spec, domain: { devices: {}, memory: { guest: '1Gi' }, ...domain } },
    ...(status === undefined ? {} : { status }),
  };
  return applyVmiDefaults(vmi, clusterDefaults(context?.hostArchitecture ?? 'amd64'), 'f1');
}

/** Converts an ordinary VMI with a change. */
export function convertWith(change: ConversionChange): DomainSpec {
  const vmi = vmiWith(change);
  const circumstances = {
    ...circumstancesFromJson(vmi, change.context ?? {}, change.options ?? {}),
    ...change.circumstances,
  };
  return convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec;
}
