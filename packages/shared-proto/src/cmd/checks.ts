import { checkJson, isJsonNull } from '../json-check.ts';
import type { CmdRpc } from './rpcs.ts';

/** KubeVirt's words for a request whose VMI is missing or no JSON. */
const NO_VMI_TEXT = 'No valid vmi object present in command server request';
const NO_MIGRATION_OPTIONS = 'migration options object not present in command server request';
const NULL_MIGRATION_OPTIONS = 'no valid migration options object present in command server request: null';

/**
 * Looks for what no handler of a request should have to think of: a VMI that is missing, no JSON or too deep, and
 * migration options that are missing or `null`.
 *
 * @returns the text to refuse the call with, if it has to be.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go (getVMIFromRequest and others)
 */
export function checkRequest(rpc: CmdRpc, request: object): string | undefined {
  if ('vmi' in request && !isVmi(request.vmi)) return NO_VMI_TEXT;
  if (rpc === 'MigrateVirtualMachine' && 'options' in request) return checkMigrationOptions(request.options);
  return undefined;
}

function isVmi(vmi: unknown): boolean {
  if (typeof vmi !== 'object' || vmi === null || !('vmiJson' in vmi)) return false;
  return vmi.vmiJson instanceof Uint8Array && checkJson(vmi.vmiJson) === undefined;
}

function checkMigrationOptions(options: unknown): string | undefined {
  if (!(options instanceof Uint8Array) || options.length === 0) return NO_MIGRATION_OPTIONS;
  return isJsonNull(options) ? NULL_MIGRATION_OPTIONS : undefined;
}
