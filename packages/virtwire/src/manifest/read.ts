import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { errorText, hasCode } from '../errors.ts';
import { parseManifest } from './parse.ts';
import type { ParsedManifest } from './parse.ts';

/** No manifest is near this; what is larger was named by mistake. */
const MAX_BYTES = 4 << 20;

/**
 * Reads one manifest file. What is no regular file is refused before anything is read of it: a pipe would be waited for,
 * a device may never end.
 */
export function readManifest(file: string): ParsedManifest {
  const refuse = (what: string): ParsedManifest => ({ vmis: [], problems: [{ where: file, field: '', what }] });
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (caught) {
    return refuse(hasCode(caught, 'ENOENT') ? 'no such file' : `cannot be read: ${errorText(caught)}`);
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile())
      return refuse(`is no manifest: it is ${found.isDirectory() ? 'a directory' : 'no plain file'}`);
    if (found.size > MAX_BYTES) return refuse(`is no manifest: it is larger than ${MAX_BYTES >> 20} MiB`);
    return parseManifest(file, readFileSync(fd, 'utf8'));
  } catch (caught) {
    return refuse(`cannot be read: ${errorText(caught)}`);
  } finally {
    closeSync(fd);
  }
}
