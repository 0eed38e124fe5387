import { InfoParams, InfoResult, InfoService } from '../gen/kubevirt/hooks/info/info.ts';
import {
  DomainHookServiceService,
  MutateDomainRequest,
  MutateDomainResponse,
} from '../gen/kubevirt/hooks/plugins/v1alpha1/domain_hook.ts';
import * as v1alpha1 from '../gen/kubevirt/hooks/v1alpha1/callbacks.ts';
import * as v1alpha2 from '../gen/kubevirt/hooks/v1alpha2/callbacks.ts';
import * as v1alpha3 from '../gen/kubevirt/hooks/v1alpha3/callbacks.ts';
import { callSidecar, type SidecarCallOptions } from './call.ts';

const CALLBACKS = { v1alpha1, v1alpha2, v1alpha3 } as const;

/** A version of the callbacks of hook sidecars. */
export type HookVersion = keyof typeof CALLBACKS;
/** Versions in which cloud-init's seed data can be changed. */
export type CloudInitHookVersion = 'v1alpha2' | 'v1alpha3';

/** The versions that a launcher knows, the one that it likes best first. `@source KubeVirt v1.9.0 pkg/hooks/manager.go` */
export const HOOK_VERSIONS: readonly HookVersion[] = ['v1alpha3', 'v1alpha2', 'v1alpha1'];

/** Asks a hook sidecar what it offers. */
export function askSidecar(socketPath: string, options: SidecarCallOptions): Promise<InfoResult> {
  const request = InfoParams.encode(InfoParams.fromPartial({})).finish();
  return callSidecar(socketPath, InfoService.info.path, request, InfoResult, options);
}

/** Lets a hook sidecar change a domain. The answer is whatever the sidecar wrote. */
export async function callOnDefineDomain(
  socketPath: string,
  version: HookVersion,
  params: { readonly domainXML: Uint8Array; readonly vmi: Uint8Array },
  options: SidecarCallOptions,
): Promise<Uint8Array> {
  const { CallbacksService, OnDefineDomainParams, OnDefineDomainResult } = CALLBACKS[version];
  const request = OnDefineDomainParams.encode(OnDefineDomainParams.fromPartial(params)).finish();
  const { path } = CallbacksService.onDefineDomain;
  return (await callSidecar(socketPath, path, request, OnDefineDomainResult, options)).domainXML;
}

/** Seed data as JSON: Go's `CloudInitData`, and the object that sidecars knew before it. */
export interface CloudInitHookData {
  readonly cloudInitNoCloudSource: Uint8Array;
  readonly cloudInitData: Uint8Array;
}

/** Lets a hook sidecar change cloud-init's seed data. */
export async function callPreCloudInitIso(
  socketPath: string,
  version: CloudInitHookVersion,
  params: CloudInitHookData & { readonly vmi: Uint8Array },
  options: SidecarCallOptions,
): Promise<CloudInitHookData> {
  const { CallbacksService, PreCloudInitIsoParams, PreCloudInitIsoResult } = CALLBACKS[version];
  const request = PreCloudInitIsoParams.encode(PreCloudInitIsoParams.fromPartial(params)).finish();
  return callSidecar(socketPath, CallbacksService.preCloudInitIso.path, request, PreCloudInitIsoResult, options);
}

/** Tells a hook sidecar of v1alpha3 that the VM has ended. */
export async function callSidecarShutdown(socketPath: string, options: SidecarCallOptions): Promise<void> {
  const { CallbacksService, ShutdownParams, ShutdownResult } = v1alpha3;
  const request = ShutdownParams.encode(ShutdownParams.fromPartial({})).finish();
  await callSidecar(socketPath, CallbacksService.shutdown.path, request, ShutdownResult, options);
}

/** Lets the sidecar of a plugin change a domain. `invocationContext` is `Boot` or `MigrationTarget`. */
export async function callMutateDomain(
  socketPath: string,
  params: { readonly domainXML: Uint8Array; readonly vmi: Uint8Array; readonly invocationContext: string },
  options: SidecarCallOptions,
): Promise<Uint8Array> {
  const message = MutateDomainRequest.fromPartial({
    domain_type: 'libvirt',
    domain: params.domainXML,
    vmi: params.vmi,
    sidecar_context: { invocation_context: params.invocationContext },
  });
  const request = MutateDomainRequest.encode(message).finish();
  const { path } = DomainHookServiceService.mutateDomain;
  return (await callSidecar(socketPath, path, request, MutateDomainResponse, options)).domain;
}
