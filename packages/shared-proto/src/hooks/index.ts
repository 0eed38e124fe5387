/** Calls of a launcher to hook sidecars and to sidecars of plugins. */
export type { SidecarCallOptions } from './call.ts';
export type { CloudInitHookData, CloudInitHookVersion, HookVersion } from './sidecar.ts';
export {
  askSidecar,
  callMutateDomain,
  callOnDefineDomain,
  callPreCloudInitIso,
  callSidecarShutdown,
  HOOK_VERSIONS,
} from './sidecar.ts';
