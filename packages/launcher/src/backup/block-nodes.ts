import { parseJson } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';

/** QEMU's command for all files that it has open, with their bitmaps. `qemu-img` sees bitmaps only of VMs that are off. */
export const QUERY_BLOCK_NODES = '{"execute":"query-named-block-nodes"}';

/** A file that QEMU has open. */
export interface BlockNode {
  readonly file: string;
  readonly bitmaps: readonly { readonly name: string; readonly isInconsistent: boolean }[];
}

/** Members of a value that may be anything. */
function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * Reads QEMU's answer to {@link QUERY_BLOCK_NODES}; what has no file is left out.
 *
 * @throws {LauncherError} `BadRequest` when it is no JSON.
 */
export function parseBlockNodes(reply: string): readonly BlockNode[] {
  let parsed: unknown;
  try {
    parsed = parseJson(reply);
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', 'failed to parse QMP response: ');
  }
  return listOf(membersOf(parsed)['return'])
    .map(membersOf)
    .flatMap(({ file, 'dirty-bitmaps': bitmaps }) => {
      if (typeof file !== 'string') return [];
      const known = listOf(bitmaps)
        .map(membersOf)
        .map(({ name, inconsistent }) => ({ name: String(name), isInconsistent: inconsistent === true }));
      return [{ file, bitmaps: known }];
    });
}
