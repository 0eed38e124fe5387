import type { Domain, DomainFeatureHyperv, DomainFeatureState, Vmi, VmiFeatureHyperv } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { confidentialityOf, isOn } from './vmi-traits.ts';

type State = { readonly enabled?: boolean } | undefined;

/**
 * CPU and machine features.
 *
 * @throws {LauncherError} `ConvertFailed` when Hyper-V passthrough does not say whether it is on.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/hypervisor_features.go
 */
export function configureFeatures(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const result = (domain.Spec.Features = {} as NonNullable<Domain['Spec']['Features']>);
  const { features } = vmi.spec.domain;
  if (features === undefined) return;
  if (isOn(features.acpi ?? {})) result.ACPI = {};
  if (isOn(features.smm)) result.SMM = {};
  if (isOn(features.apic)) result.APIC = {};
  if (features.hyperv !== undefined) result.Hyperv = renderHyperv(features.hyperv);
  else if (features.hypervPassthrough !== undefined) {
    // The model crashes here; its webhook never sets the field by default.
    if (features.hypervPassthrough.enabled === undefined) {
      throw new LauncherError('ConvertFailed', 'features.hypervPassthrough.enabled must be true or false');
    }
    if (features.hypervPassthrough.enabled) result.Hyperv = { Mode: 'passthrough' };
  }
  if (features.kvm !== undefined) result.KVM = { Hidden: { State: onOff(features.kvm.hidden === true) } };
  if (features.pvspinlock !== undefined) result.PVSpinlock = stateOf(features.pvspinlock);
  if (confidentialityOf(vmi) === 'tdx') result.PMU = { State: 'off' };
  if (context.arch.disablesVmPort) result.VMPort = { State: 'off' };
}

function renderHyperv(source: VmiFeatureHyperv): DomainFeatureHyperv {
  const { spinlocks, synictimer, vendorid, tlbflush } = source;
  return {
    Relaxed: stateOf(source.relaxed),
    VAPIC: stateOf(source.vapic),
    Spinlocks: spinlocks && { ...stateOf(spinlocks), Retries: spinlocks.spinlocks },
    VPIndex: stateOf(source.vpindex),
    Runtime: stateOf(source.runtime),
    SyNIC: stateOf(source.synic),
    SyNICTimer: synictimer && { ...stateOf(synictimer), Direct: stateOf(synictimer.direct) },
    Reset: stateOf(source.reset),
    VendorID: vendorid && { ...stateOf(vendorid), Value: vendorid.vendorid },
    Frequencies: stateOf(source.frequencies),
    Reenlightenment: stateOf(source.reenlightenment),
    TLBFlush: tlbflush && {
      ...stateOf(tlbflush),
      Direct: stateOf(tlbflush.direct),
      Extended: stateOf(tlbflush.extended),
    },
    IPI: stateOf(source.ipi),
    EVMCS: stateOf(source.evmcs),
  };
}

function stateOf(state: State): DomainFeatureState | undefined {
  return state === undefined ? undefined : { State: onOff(isOn(state)) };
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}
