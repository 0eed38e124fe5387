export { VIRTWIRE_ERROR_CODES, VirtwireError } from './errors.ts';
export type { VirtwireErrorCode } from './errors.ts';
export { DEFAULT_STATE_DIR, nodeLayout } from './state/layout.ts';
export type { NodeLayout } from './state/layout.ts';
export { renderOciConfig } from './sandbox/oci-config.ts';
export type { SandboxBind, SandboxSpec } from './sandbox/oci-config.ts';
