import type { RunFamily } from '../family.ts';

/** A family of cases: its code is loaded when it is asked for. */
export interface FamilyEntry {
  readonly load: () => Promise<RunFamily>;
  /** Name of our copy in `testdata/`, when it is not that of the family. */
  readonly data?: string;
}

/** Every family that the runner knows, by the name of its folder. */
export const FAMILIES: ReadonlyMap<string, FamilyEntry> = new Map<string, FamilyEntry>([
  ['converter', { load: async () => (await import('./converter.ts')).runConverter }],
  ['dhcp', { load: async () => (await import('./dhcp.ts')).runDhcp }],
  ['handler', { load: async () => (await import('./handler.ts')).runHandler }],
  ['handler-domains', { load: async () => (await import('./handler-domains.ts')).runHandlerDomains }],
  ['handler-phase', { load: async () => (await import('./handler-phase.ts')).runHandlerPhase }],
  ['host-disk', { load: async () => (await import('./host-disk.ts')).runHostDisk }],
  ['launcher-agent', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['launcher-cloudinit', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['launcher-events', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['launcher-migration', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['launcher-stats', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['launcher-sync', { load: async () => (await import('./launcher.ts')).runLauncher }],
  ['network-read', { load: async () => (await import('./network-read.ts')).runNetworkRead }],
  ['network-phase1', { load: async () => (await import('./network-phase1.ts')).runNetworkPhase1 }],
  ['network-status', { load: async () => (await import('./network-status.ts')).runNetworkStatus }],
  ['libvirt', { load: async () => (await import('./libvirt.ts')).runLibvirt }],
  ['vmi-defaults', { load: async () => (await import('./vmi-defaults.ts')).runVmiDefaults, data: 'converter' }],
]);
