import { emptyDomain } from '@virtwire/vm-model';
import { clusterConfig } from '../cluster-config.ts';
import type { Domain, Vmi } from '../model.ts';
import type { StatusInput } from '../status/facts.ts';
import type { Observed } from '../vmi/observed.ts';

/** Noon of a day, for tests that compare times. */
export const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

/** A VMI of node01 in a phase; `edit` changes the copy. */
export function sampleVmi(
  phase: 'Scheduled' | 'Running' | 'Succeeded' | 'Failed' | 'Pending',
  edit?: (vmi: Vmi) => void,
): Vmi {
  const vmi: Vmi = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      namespace: 'ns1',
      name: 'vm1',
      uid: 'uid-1',
      resourceVersion: '7',
      labels: { 'kubevirt.io/nodeName': 'node01' },
    },
    spec: {
      terminationGracePeriodSeconds: 30,
      architecture: 'amd64',
      networks: [{ name: 'default', pod: {} }],
      domain: { resources: {}, devices: { interfaces: [{ name: 'default', masquerade: {} }] } },
    },
    status: {
      phase,
      nodeName: 'node01',
      runtimeUser: 107,
      activePods: { 'pod-1': 'node01' },
      phaseTransitionTimestamps: [{ phase: 'Scheduled', phaseTransitionTimestamp: '2026-03-01T11:59:50Z' }],
    },
  };
  edit?.(vmi);
  return vmi;
}

/** The domain of {@link sampleVmi}. */
export function sampleDomain(
  status: Domain['Status']['Status'],
  reason: Domain['Status']['Reason'] = 'Unknown',
  edit?: (domain: Domain) => void,
): Domain {
  const domain = emptyDomain();
  domain.ObjectMeta = { namespace: 'ns1', name: 'vm1', uid: 'uid-1' };
  domain.Spec.Metadata.KubeVirt = { UID: 'uid-1', GracePeriod: { DeletionGracePeriodSeconds: 30 } };
  domain.Spec.Features = { ACPI: {} };
  domain.Spec.Devices.Interfaces = [{ Alias: { Name: 'default' }, MAC: { MAC: '02:00:00:00:00:01' } }];
  domain.Status = { ...domain.Status, Status: status, Reason: reason };
  edit?.(domain);
  return domain;
}

/** Facts of a VMI that runs well; `change` replaces some. */
export function sampleObserved(change: Partial<Observed> = {}): Observed {
  return {
    key: 'ns1/vm1',
    nowMs: NOW_MS,
    nodeName: 'node01',
    vmi: sampleVmi('Running'),
    isExpectationOpen: false,
    domain: { state: 'present', domain: sampleDomain('Running') },
    recordedUid: 'uid-1',
    launcher: 'responsive',
    strangerLauncher: undefined,
    cluster: { config: clusterConfig(), topology: undefined, plugins: [] },
    ...change,
  };
}

/** Input of a status computation; `change` replaces parts of it. */
export function sampleStatusInput(change: Partial<StatusInput> = {}): StatusInput {
  return {
    vmi: sampleVmi('Running'),
    domain: sampleDomain('Running'),
    launcher: 'responsive',
    nowMs: NOW_MS,
    nodeName: 'node01',
    syncError: undefined,
    facts: {
      selinuxContext: 'none',
      isoSizes: new Map(),
      mountedVolumes: new Set(),
      podInterfaces: new Map([['default', { podIP: '10.0.0.5', podIPs: ['10.0.0.5'] }]]),
      guestAgent: undefined,
      hostCpuModel: '',
      hostArchitecture: 'amd64',
    },
    config: clusterConfig(),
    ...change,
  };
}
