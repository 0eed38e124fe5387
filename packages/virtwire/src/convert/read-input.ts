import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { parseJson, renderJson } from '@virtwire/vm-model';
import { parseAllDocuments } from 'yaml';
import { errorText, hasCode, VirtwireError } from '../errors.ts';

/** What is larger is no input of a conversion: a VMI travels in a message of at most 4 MiB. */
const MAX_BYTES = 16 << 20;
const STANDARD_INPUT = '-';
const TOO_DEEP = 'bad YAML: an alias stands within what it stands for, or lists nest too deeply';

/**
 * Reads one JSON or YAML document of a file, pipe or, as `-`, standard input. Integers keep every digit.
 *
 * @param interpret makes something of the parsed document; what it throws is told with the name of the file.
 * @throws {VirtwireError} `BadInput` with the name of the file.
 */
export async function readInput<T>(
  path: string,
  standardInput: () => Readable,
  interpret: (value: unknown) => T,
): Promise<T> {
  const name = path === STANDARD_INPUT ? 'standard input' : path;
  const text = await readText(name, path === STANDARD_INPUT ? standardInput() : createReadStream(path));
  try {
    return interpret(/^\s*[{[]/.test(text) ? parseJson(text) : parseYaml(text));
  } catch (caught) {
    throw new VirtwireError('BadInput', `${name}: ${errorText(caught)}`, { cause: caught });
  }
}

async function readText(name: string, stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BYTES) break; // which ends the stream, so that a device without end is left
      chunks.push(chunk);
    }
  } catch (caught) {
    const what = hasCode(caught, 'ENOENT') ? 'no such file' : `cannot be read: ${errorText(caught)}`;
    throw new VirtwireError('BadInput', `${name}: ${what}`, { cause: caught });
  }
  if (size > MAX_BYTES) throw new VirtwireError('BadInput', `${name}: is larger than ${MAX_BYTES >> 20} MiB`);
  return new TextDecoder().decode(Buffer.concat(chunks)); // which leaves out a byte order mark
}

/** By way of JSON, which has no aliases, dates or other types of YAML. */
function parseYaml(text: string): unknown {
  const [document, second] = parseAllDocuments(text, { intAsBigInt: true });
  if (document === undefined) throw new VirtwireError('BadInput', 'is empty');
  if (second !== undefined) throw new VirtwireError('BadInput', 'holds more than one document');
  const [error] = document.errors;
  if (error !== undefined) throw new VirtwireError('BadInput', `bad YAML: ${error.message.split('\n')[0] ?? ''}`);
  const value: unknown = document.toJS();
  try {
    return parseJson(renderJson(value));
  } catch (caught) {
    throw new VirtwireError('BadInput', TOO_DEEP, { cause: caught });
  }
}
