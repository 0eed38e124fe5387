import { anyObject, list, omitEmpty, pointer, text } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);
const named = omitEmpty(list(struct('PluginAdmissionReference', { name: text })));

const domainHook = struct('DomainHook', {
  cel: omitEmpty(pointer(struct('CELHook', { expression: text }))),
  sidecar: omitEmpty(pointer(struct('SidecarHook', { socketPath: text }))),
  condition: some,
  failureStrategy: some,
  timeout: some,
});
const nodeHook = struct('NodeHook', {
  socket: text,
  permittedHooks: list(text),
  condition: some,
  failureStrategy: some,
  timeout: some,
});
const fields = {
  kind: some,
  apiVersion: some,
  metadata: anyObject,
  spec: struct('PluginSpec', {
    condition: some,
    failureStrategy: some,
    domainHooks: omitEmpty(list(domainHook)),
    nodeHooks: omitEmpty(list(nodeHook)),
    mutatingAdmissionPolicies: named,
    validatingAdmissionPolicies: named,
    mutatingAdmissionWebhooks: named,
    validatingAdmissionWebhooks: named,
  }),
  status: anyObject,
};

/** A plugin with its hooks. */
export type Plugin = ObjectOf<typeof fields>;

/** `pluginsJson` of the options: replaces the launcher's list; absent or empty clears it. Since v1.9. */
export const plugins = payload(list(struct('Plugin', fields, 'v1alpha1.Plugin')));
