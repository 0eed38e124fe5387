import {
  type CircumstancesJson,
  circumstancesFromJson,
  type ConverterOptionsJson,
  convertVmi,
  countHotplugPorts,
  resolveConverterContext,
} from '@virtwire/launcher';
import {
  type Domain,
  parseJson,
  parseVmiJson,
  parseXmlTree,
  renderDomainJson,
  renderDomainXml,
} from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson, diffKeyOrder } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';
import { nodeVmi } from './vmi-defaults.ts';
import { diffXml } from '../xml-tree.ts';

/** What a conversion came to: a domain, an error, or (stage `ports`) both. */
interface Outcome {
  readonly domain?: Domain;
  readonly ports?: unknown;
  readonly error?: string;
}

/**
 * The converter's input is `vmi.launcher.json`; equal are the XML as elements, attributes, text and order, the domain
 * JSON with its key order, the port counts, and errors to the letter.
 */
export async function* runConverter(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) yield await runCase(name, () => compare(files, name, convert(files, name)));
}

function convert(files: Files, name: string): Outcome {
  let domain: Domain | undefined;
  try {
    const path = `${name}/vmi.launcher.json`;
    const vmi = files.has(path) ? parseVmiJson(files.text(path)) : nodeVmi(files, name);
    const options = files.has(`${name}/options.json`)
      ? (files.json(`${name}/options.json`) as ConverterOptionsJson)
      : undefined;
    const circumstances = circumstancesFromJson(vmi, files.json(`${name}/context.json`) as CircumstancesJson, options);
    domain = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
    return { domain, ports: countHotplugPorts(vmi, domain.Spec) };
  } catch (caught) {
    if (!(caught instanceof Error) || !('code' in caught)) throw caught;
    return { error: caught.message, ...(domain === undefined ? {} : { domain }) };
  }
}

function compare(files: Files, name: string, outcome: Outcome): readonly string[] {
  const hasError = files.has(`${name}/error.txt`);
  const error = hasError ? compareError(files.text(`${name}/error.txt`), outcome.error) : [];
  if (!hasError && outcome.error !== undefined) return [`error: expected none, got "${outcome.error}"`];
  if (!files.has(`${name}/domain.xml`)) return error;
  if (outcome.domain === undefined) return [...error, 'expected a domain, got none'];
  return [
    ...error,
    ...compareDomain(files, name, outcome.domain),
    ...(hasError ? [] : comparePorts(files, name, outcome)),
  ];
}

/** A crash of the Go code may be any error here. */
function compareError(expected: string, actual: string | undefined): readonly string[] {
  if (actual === undefined) return [`error: expected "${expected}", got none`];
  if (expected.startsWith('panic:') || expected === actual) return [];
  return [`error: expected "${expected}", got "${actual}"`];
}

function compareDomain(files: Files, name: string, domain: Domain): readonly string[] {
  const expectedJson = files.json(`${name}/domain.json`);
  const actualJson = parseJson(renderDomainJson(domain));
  return [
    ...diffXml(parseXmlTree(files.text(`${name}/domain.xml`)), parseXmlTree(renderDomainXml(domain.Spec))),
    ...diffJson(expectedJson, actualJson, 'json'),
    ...diffKeyOrder(expectedJson, actualJson, 'json'),
  ];
}

function comparePorts(files: Files, name: string, { ports }: Outcome): readonly string[] {
  const path = `${name}/ports.json`;
  return diffJson(files.has(path) ? files.json(path) : undefined, ports, 'ports');
}
