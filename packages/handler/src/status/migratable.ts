import type { ClusterConfig } from '../cluster-config.ts';
import type { Condition, Vmi } from '../model.ts';
import { findCondition, isSameCondition, makeCondition, withConditionLast } from './conditions.ts';
import type { StatusEvent } from './facts.ts';
import { volumeMigration } from './migratable-volumes.ts';

/** Conditions and method of live migration, with the event of a VMI that must move and cannot. */
export interface MigratableResult {
  readonly conditions: readonly Condition[];
  readonly method: 'LiveMigration' | 'BlockMigration';
  readonly events: readonly StatusEvent[];
}

interface Obstacle {
  readonly reason: string;
  readonly message: string;
}

interface Facts {
  readonly vmi: Vmi;
  readonly config: ClusterConfig;
  readonly hostCpuModel: string;
}

const POD_NETWORK =
  'cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network';

function networkObstacle({ vmi, config }: Facts): Obstacle | undefined {
  const reason = 'InterfaceNotLiveMigratable';
  const interfaces = vmi.spec.domain.devices.interfaces ?? [];
  const network = (vmi.spec.networks ?? []).find((one) => one.pod !== undefined);
  if (interfaces.length === 0 || network === undefined) return undefined;
  const iface = interfaces.find((one) => one.name === network.name);
  if (iface === undefined) return { reason, message: `no primary interface found for network ${network.name}` };
  const mayMoveBridge = vmi.metadata.annotations?.['kubevirt.io/allow-pod-bridge-network-live-migration'] !== undefined;
  const isMovable =
    iface.masquerade !== undefined ||
    iface.passtBinding !== undefined ||
    (iface.bridge !== undefined && mayMoveBridge) ||
    (iface.binding !== undefined && config.bindingPlugins[iface.binding.name]?.migration !== undefined);
  return isMovable ? undefined : { reason, message: POD_NETWORK };
}

function cpuObstacle({ vmi, hostCpuModel }: Facts): Obstacle | undefined {
  if (vmi.spec.domain.cpu?.model !== 'host-model' || hostCpuModel !== '') return undefined;
  const message = `the node "${vmi.status?.nodeName ?? ''}" does not allow migration with host-model`;
  return { reason: 'CPUModeLiveMigratable', message };
}

function deviceObstacle({ vmi, config }: Facts): Obstacle | undefined {
  const reason = 'HostDeviceNotLiveMigratable';
  const { hostDevices = [], gpus = [] } = vmi.spec.domain.devices;
  if (hostDevices.length > 0) return { reason, message: 'VMI specifies non-migratable generic PCI host device' };
  if (gpus.length > 1) return { reason, message: 'VMI specifies too many GPUs' };
  const gpu = gpus[0];
  if (gpu === undefined) return undefined;
  if (!config.isGateOn('VGPULiveMigration')) {
    return { reason, message: 'VMI specifies a GPU but feature gate VGPULiveMigration is not enabled' };
  }
  if (config.mediatedDeviceResources.includes(gpu.deviceName ?? '')) return undefined;
  return { reason, message: 'VMI specifies non-migratable GPU device' };
}

function confidentialObstacle({ vmi }: Facts): Obstacle | undefined {
  const security = vmi.spec.domain.launchSecurity;
  if (security?.sev !== undefined || security?.snp !== undefined) {
    return { reason: 'SEVNotLiveMigratable', message: 'VMI uses SEV' };
  }
  return security?.tdx === undefined ? undefined : { reason: 'TDXNotLiveMigratable', message: 'VMI uses TDX' };
}

function secureExecutionObstacle({ vmi }: Facts): Obstacle | undefined {
  if (vmi.spec.domain.launchSecurity === undefined || vmi.spec.architecture !== 's390x') return undefined;
  return { reason: 'SecureExecutionNotLiveMigratable', message: 'VMI uses Secure Execution' };
}

function timerObstacle({ vmi }: Facts): Obstacle | undefined {
  const reenlightenment = vmi.spec.domain.features?.hyperv?.reenlightenment;
  if (reenlightenment === undefined || reenlightenment.enabled === false) return undefined;
  if (vmi.status?.topologyHints?.tscFrequency !== undefined) return undefined;
  return {
    reason: 'NoTSCFrequencyNotLiveMigratable',
    message:
      'HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed on the cluster: guest timers might be inconsistent',
  };
}

function passthroughObstacle({ vmi }: Facts): Obstacle | undefined {
  if (vmi.spec.domain.features?.hypervPassthrough?.enabled !== true) return undefined;
  return { reason: 'HypervPassthroughNotLiveMigratable', message: 'VMI uses hyperv passthrough' };
}

function reservationObstacle({ vmi }: Facts): Obstacle | undefined {
  const hasReservation = (vmi.spec.domain.devices.disks ?? []).some((disk) => disk.lun?.reservation === true);
  if (!hasReservation) return undefined;
  return {
    reason: 'PersistentReservationNotLiveMigratable',
    message: 'VMI uses SCSI persistent reservation',
  };
}

type Check = (facts: Facts) => Obstacle | undefined;

const LIVE_CHECKS: readonly Check[] = [
  networkObstacle,
  cpuObstacle,
  deviceObstacle,
  confidentialObstacle,
  secureExecutionObstacle,
  timerObstacle,
  passthroughObstacle,
];
const STORAGE_CHECKS: readonly Check[] = [
  networkObstacle,
  cpuObstacle,
  deviceObstacle,
  confidentialObstacle,
  reservationObstacle,
  timerObstacle,
  passthroughObstacle,
];

function liveCondition(facts: Facts, volumeError: string | undefined): Condition {
  const disks = volumeError === undefined ? undefined : { reason: 'DisksNotLiveMigratable', message: volumeError };
  const obstacle = LIVE_CHECKS.map((check) => check(facts)).find((one) => one !== undefined) ?? disks;
  return makeCondition('LiveMigratable', obstacle === undefined ? 'True' : 'False', obstacle);
}

function storageCondition(facts: Facts): Condition {
  const obstacles = STORAGE_CHECKS.map((check) => check(facts)).filter((one) => one !== undefined);
  if (obstacles.length === 0) return makeCondition('StorageLiveMigratable', 'True');
  const message = obstacles.map((one) => `${one.reason}: ${one.message}`).join(', ');
  return makeCondition('StorageLiveMigratable', 'False', { reason: 'NotMigratable', message });
}

function evictionEvents({ vmi, config }: Facts, live: Condition): StatusEvent[] {
  const strategy = vmi.spec.evictionStrategy ?? config.evictionStrategy;
  if (strategy !== 'LiveMigrate' || live.status !== 'False') return [];
  const message = `EvictionStrategy is set but vmi is not migratable; ${live.message ?? ''}`;
  return [{ type: 'Warning', reason: 'Migrated', message }];
}

/**
 * Conditions `LiveMigratable` and `StorageLiveMigratable`, and the migration method.
 *
 * A changed LiveMigratable moves to the end of the list. StorageLiveMigratable keeps its place, and its message for as
 * long as its status stays.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateLiveMigrationConditions)
 */
export function migratability(
  vmi: Vmi,
  conditions: readonly Condition[],
  config: ClusterConfig,
  hostCpuModel: string,
): MigratableResult {
  const facts: Facts = { vmi, config, hostCpuModel };
  const volumes = volumeMigration(vmi);
  const live = liveCondition(facts, volumes.error);
  const oldLive = findCondition(conditions, 'LiveMigratable');
  const withLive =
    oldLive !== undefined && isSameCondition(oldLive, live) ? conditions : withConditionLast(conditions, live);
  const storage = storageCondition(facts);
  const oldStorage = findCondition(withLive, 'StorageLiveMigratable');
  const isKept = oldStorage?.status === storage.status && (oldStorage.reason ?? '') === (storage.reason ?? '');
  const inPlace = withLive.map((one) => (one === oldStorage && !isKept ? storage : one));
  return {
    conditions: oldStorage === undefined ? [...withLive, storage] : inPlace,
    method: volumes.isBlockMigration ? 'BlockMigration' : 'LiveMigration',
    events: evictionEvents(facts, live),
  };
}
