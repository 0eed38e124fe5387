import { parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { LauncherFlags } from '../config/flags.ts';
import { LauncherError } from '../errors.ts';

/** Variable with the VMI of a launcher that has no handler. */
export const STANDALONE_VMI = 'STANDALONE_VMI';

async function jsonOf(text: string): Promise<string> {
  // JSON is taken as it is, so that long numbers keep their digits. Few launchers need the YAML reader.
  if (text.trimStart().startsWith('{')) return text;
  const { parse } = await import('yaml');
  return JSON.stringify(parse(text) ?? null);
}

async function parseVmi(text: string): Promise<Vmi> {
  try {
    return parseVmiJson(await jsonOf(text));
  } catch (caught) {
    throw LauncherError.from(caught, 'StandaloneFailed', `${STANDALONE_VMI} is no VirtualMachineInstance: `);
  }
}

/**
 * Reads the VMI of a launcher that runs without a handler: YAML or JSON, complete, since no defaults are added.
 *
 * @throws {LauncherError} `StandaloneFailed` for a text that is no VMI, and for one whose names are not those of the flags:
 * the launcher would look for its files and its QEMU under other names than the VM has
 * @source KubeVirt v1.9.0 pkg/virt-launcher/standalone/standalone.go
 */
export async function readStandaloneVmi(
  text: string,
  flags: Pick<LauncherFlags, 'namespace' | 'name' | 'uid'>,
): Promise<Vmi> {
  const vmi = await parseVmi(text);
  for (const field of ['namespace', 'name', 'uid'] as const) {
    const found = vmi.metadata[field];
    if (found === flags[field]) continue;
    const message = `${STANDALONE_VMI} has the ${field} "${found}", but the launcher was started with --${field} "${flags[field]}"`;
    throw new LauncherError('StandaloneFailed', message);
  }
  return vmi;
}
