import { parseVmiJson, unknownSpecFields } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { parseAllDocuments } from 'yaml';
import { errorText } from '../errors.ts';
import type { Problem } from './problem.ts';
import { checkTypes } from './types.ts';

/** A VMI of a manifest file. */
export interface ManifestVmi {
  /** File it came from. */
  readonly file: string;
  readonly vmi: Vmi;
  /** Fields that KubeVirt does not have, which nobody will read. */
  readonly unknown: readonly Problem[];
}

/** What a manifest file holds. */
export interface ParsedManifest {
  readonly vmis: readonly ManifestVmi[];
  readonly problems: readonly Problem[];
}

const API_GROUP = 'kubevirt.io/';
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
const MAX_LABEL = 63;

type Fields = Record<string, unknown>;

/** Whether a value is an object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The VMI that a document stands for: itself, or the template of a VirtualMachine; a text is what is wrong with it. */
export function vmiFields(document: Fields): Fields | string {
  const { apiVersion, kind } = document;
  if (typeof apiVersion !== 'string' || !apiVersion.startsWith(API_GROUP)) return 'apiVersion must be kubevirt.io/v1';
  if (kind === 'VirtualMachineInstance') return document;
  if (kind !== 'VirtualMachine') return `kind must be VirtualMachineInstance or VirtualMachine, not ${String(kind)}`;
  const spec = document['spec'];
  const template = isFields(spec) ? spec['template'] : undefined;
  if (!isFields(template)) return 'spec.template is missing';
  const own = isFields(document['metadata']) ? document['metadata'] : {};
  const inner = isFields(template['metadata']) ? template['metadata'] : {};
  const metadata = { ...inner, name: own['name'], namespace: own['namespace'] };
  return { apiVersion, kind: 'VirtualMachineInstance', metadata, spec: template['spec'] };
}

function checkNames(vmi: Vmi, where: string): Problem[] {
  const { name, namespace } = vmi.metadata;
  const problems: Problem[] = [];
  if (!name) {
    problems.push({ where, field: 'metadata.name', what: 'is missing: name the VM, with a-z, 0-9, - and .' });
  } else if (typeof name !== 'string' || name.length > MAX_NAME || !NAME.test(name)) {
    problems.push({ where, field: 'metadata.name', what: `"${name}" is no name: use a-z, 0-9, - and .` });
  }
  if (
    typeof namespace !== 'string' ||
    namespace.length > MAX_LABEL ||
    !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace)
  ) {
    problems.push({ where, field: 'metadata.namespace', what: `"${namespace}" is no namespace: use a-z, 0-9 and -` });
  }
  return problems;
}

function findUnknown(where: string, vmi: Vmi): readonly Problem[] {
  return unknownSpecFields(vmi).map((field) => ({
    where,
    field,
    what: 'KubeVirt has no such field: it is ignored',
  }));
}

function readDocument(file: string, index: number, value: unknown): { vmi: Vmi } | readonly Problem[] {
  const where = index === 0 ? file : `${file} (document ${index + 1})`;
  const refuse = (field: string, what: string): readonly Problem[] => [{ where, field, what }];
  if (!isFields(value)) return refuse('', 'is no VirtualMachineInstance');
  const fields = vmiFields(value);
  if (typeof fields === 'string') return refuse('', fields);
  if (!isFields(fields['spec'])) return refuse('spec', 'is missing');
  if (!isFields(fields['spec']['domain'])) return refuse('spec.domain', 'is missing');
  let json: string;
  try {
    json = JSON.stringify({ ...fields, status: undefined });
  } catch {
    return refuse('', 'bad YAML: an alias stands within what it stands for, or lists nest too deeply');
  }
  const problems: Problem[] = [];
  checkTypes((field, what) => void problems.push({ where, field, what }), fields);
  if (problems.length > 0) return problems;
  try {
    const vmi = parseVmiJson(json);
    vmi.metadata.namespace ||= 'default';
    return { vmi };
  } catch (caught) {
    return refuse('', errorText(caught));
  }
}

/** Reads the text of one manifest file: YAML or JSON, one or more documents. Only its form is checked here. */
export function parseManifest(file: string, text: string): ParsedManifest {
  const vmis: ManifestVmi[] = [];
  const problems: Problem[] = [];
  const documents = parseAllDocuments(text);
  for (const [index, document] of [...documents].entries()) {
    const [error] = document.errors;
    if (error !== undefined) {
      const at = error.linePos?.[0];
      const where = at === undefined ? file : `${file}:${at.line}:${at.col}`;
      problems.push({
        where,
        field: '',
        what: `bad YAML: ${error.message.split('\n')[0]?.replace(/ at line .*$/, '') ?? ''}`,
      });
      continue;
    }
    let value: unknown;
    try {
      value = document.toJS();
    } catch (caught) {
      problems.push({ where: file, field: '', what: `bad YAML: ${errorText(caught)}` });
      continue;
    }
    if (value === null && documents.length > 1) continue; // an empty document between two separators
    const read = readDocument(file, index, value);
    if (!('vmi' in read)) {
      problems.push(...read);
      continue;
    }
    const bad = checkNames(read.vmi, file);
    problems.push(...bad);
    if (bad.length === 0) vmis.push({ file, vmi: read.vmi, unknown: findUnknown(file, read.vmi) });
  }
  return { vmis, problems };
}
