import type { Readable } from 'node:stream';
import { LauncherError } from '@virtwire/launcher';
import {
  parseJson,
  parseVmiJson,
  renderDomainJson,
  renderDomainXml,
  renderJson,
  VmModelError,
} from '@virtwire/vm-model';
import type { Domain, Vmi } from '@virtwire/vm-model';
import { checkContext, checkOptions } from '../convert/context.ts';
import { convert } from '../convert/convert.ts';
import { readInput } from '../convert/read-input.ts';
import { VirtwireError } from '../errors.ts';
import { isFields, vmiFields } from '../manifest/parse.ts';
import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';

const JSON_INDENT = 2;

/** What `virtwire convert` is called with. Files are paths, or `-` for standard input. */
export interface ConvertRequest {
  readonly vmi: string;
  readonly options: string | undefined;
  readonly context: string | undefined;
  readonly defaults: boolean;
  /** `xml` or `json`. */
  readonly out: string;
  readonly output: Output;
  readonly standardInput: () => Readable;
}

/**
 * Prints the domain that a launcher would define for a VMI; what prevents it goes to standard error in KubeVirt's own
 * words, and nothing else does.
 *
 * @returns the exit code: 0, or 1 when there is no domain.
 * @throws {VirtwireError} `Usage` for a command line that makes no sense.
 */
export async function convertCommand(request: ConvertRequest): Promise<number> {
  const { output, out } = request;
  if (out !== 'xml' && out !== 'json') throw new VirtwireError('Usage', `convert: --out is xml or json, not ${out}`);
  const inputs = [request.vmi, request.options, request.context].filter((file) => file === '-');
  if (inputs.length > 1) throw new VirtwireError('Usage', 'convert: one file at most can come from standard input');
  try {
    const domain = await convertFiles(request);
    output.document(out === 'xml' ? renderDomainXml(domain.Spec, { indent: '\t' }) : prettyJson(domain), 'output');
    return EXIT.ok;
  } catch (caught) {
    const isTold = caught instanceof LauncherError || caught instanceof VmModelError || isBadInput(caught);
    if (!isTold) throw caught;
    output.document(caught.message, 'error');
    return EXIT.failed;
  }
}

async function convertFiles({ vmi, options, context, defaults, standardInput }: ConvertRequest): Promise<Domain> {
  return convert({
    vmi: await readInput(vmi, standardInput, vmiOf),
    options: options === undefined ? undefined : await readInput(options, standardInput, checkOptions),
    context: context === undefined ? {} : await readInput(context, standardInput, checkContext),
    isToComplete: defaults,
  });
}

/** A VMI, or the one that a VirtualMachine stands for. */
function vmiOf(value: unknown): Vmi {
  const isOther = isFields(value) && typeof value['kind'] === 'string' && value['kind'] !== 'VirtualMachineInstance';
  const fields = isOther ? vmiFields(value) : value;
  if (isOther && typeof fields === 'string') throw new VirtwireError('BadInput', fields);
  return parseVmiJson(renderJson(fields));
}

/** For people; on the wire it has neither blanks nor line ends. */
function prettyJson(domain: Domain): string {
  return renderJson(parseJson(renderDomainJson(domain)), JSON_INDENT);
}

function isBadInput(caught: unknown): caught is VirtwireError {
  return caught instanceof VirtwireError && caught.code === 'BadInput';
}
