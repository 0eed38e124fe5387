import type { CellResult } from '../cell.ts';
import type { HandlerScene } from './handler-scene.ts';
import type { LauncherScene } from './launcher-scene.ts';
import * as handlerComing from './handler/coming.ts';
import { containerDisk } from './handler/container-disk.ts';
import * as handlerEnding from './handler/ending.ts';
import * as handlerHands from './handler/changing-hands.ts';
import { missingRpcs } from './handler/missing-rpcs.ts';
import * as handlerRequests from './handler/requests.ts';
import * as handlerRunning from './handler/running.ts';
import * as handlerTrouble from './handler/trouble.ts';
import * as launcherBad from './launcher/bad-requests.ts';
import * as launcherComing from './launcher/coming.ts';
import * as launcherEnding from './launcher/ending.ts';
import * as launcherHands from './launcher/changing-hands.ts';
import * as launcherRunning from './launcher/running.ts';

/** One row of the matrix: what happens to a VM, seen from the side that is under test. Throwing is a fail. */
export interface Scenario {
  /** Kebab-case and stable: reports and mutants name it. */
  readonly name: string;
  readonly title: string;
  readonly handler?: (scene: HandlerScene) => Promise<CellResult>;
  readonly launcher?: (scene: LauncherScene) => Promise<CellResult>;
}

/** Every scenario, in the order of a VM's life. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'first-start',
    title: 'first start',
    handler: handlerRunning.firstStart,
    launcher: launcherRunning.firstStart,
  },
  {
    name: 'first-patch',
    title: "first start, with the line's first patch release",
    handler: (scene) => handlerRunning.firstStart(scene, 'first'),
    launcher: (scene) => launcherRunning.firstStart(scene, 'first'),
  },
  { name: 'status', title: 'status', handler: handlerRunning.status, launcher: launcherRunning.status },
  { name: 'update', title: 'update', handler: handlerRunning.update, launcher: launcherRunning.update },
  { name: 'pause', title: 'pause and unpause', handler: handlerRunning.pause, launcher: launcherRunning.pause },
  {
    name: 'guest-agent',
    title: 'guest agent comes and goes',
    handler: handlerRunning.guestAgent,
    launcher: launcherRunning.guestAgent,
  },
  {
    name: 'requests',
    title: 'questions and requests of REST and metrics',
    handler: handlerRequests.requests,
    launcher: launcherRunning.requests,
  },
  {
    name: 'graceful-stop',
    title: 'graceful stop',
    handler: handlerEnding.gracefulStop,
    launcher: launcherEnding.gracefulStop,
  },
  { name: 'kill', title: 'kill', handler: handlerEnding.kill, launcher: launcherEnding.kill },
  { name: 'pod-end', title: 'the pod is ended', handler: handlerEnding.podEnd, launcher: launcherEnding.podEnd },
  {
    name: 'handler-restart',
    title: 'handler restart in the middle',
    handler: handlerHands.handlerRestart,
    launcher: launcherHands.handlerRestart,
  },
  {
    name: 'upgrade-in-the-middle',
    title: 'upgrade in the middle, and downgrade',
    handler: handlerHands.upgradeInTheMiddle,
    launcher: launcherHands.upgradeInTheMiddle,
  },
  {
    name: 'notify-loss',
    title: 'notify loss and resync',
    handler: handlerTrouble.notifyLossAndResync,
    launcher: launcherHands.notifyLossAndResync,
  },
  { name: 'libvirt-restart', title: 'libvirt goes and comes back', launcher: launcherHands.libvirtRestart },
  { name: 'launcher-hangs', title: 'the launcher hangs', handler: handlerTrouble.launcherHangs },
  { name: 'launcher-dies', title: 'the launcher dies', handler: handlerTrouble.launcherDies },
  { name: 'missing-rpcs', title: 'a launcher that lacks RPCs', handler: missingRpcs },
  { name: 'container-disk', title: 'start with a container disk', handler: containerDisk },
  {
    name: 'acpi-tables',
    title: 'ACPI tables',
    handler: handlerRunning.acpiTables,
    launcher: launcherRunning.acpiTables,
  },
  {
    name: 'bad-requests',
    title: 'bad requests and answers',
    handler: handlerTrouble.badRequests,
    launcher: launcherBad.badRequests,
  },
  {
    name: 'hotplug-disk',
    title: 'hotplug of a disk',
    handler: handlerComing.hotplugDisk,
    launcher: launcherComing.hotplugDisk,
  },
  { name: 'hotplug-host-devices', title: 'hotplug of host devices', launcher: launcherComing.hotplugHostDevices },
  {
    name: 'migration-source',
    title: 'migration, source side',
    handler: handlerComing.migrationSource,
    launcher: launcherComing.migrationSource,
  },
  {
    name: 'migration-failure',
    title: 'migration, given up',
    launcher: launcherComing.migrationFailure,
  },
  {
    name: 'migration-target',
    title: 'migration, target side',
    handler: handlerComing.migrationTarget,
    launcher: launcherComing.migrationTarget,
  },
];
