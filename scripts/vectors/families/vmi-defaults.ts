import {
  applyVmiDefaults,
  clusterDefaults,
  type KubeVirtConfiguration,
  parseJson,
  parseVmiJson,
  renderJson,
  replacePvcByHostDisk,
  type Vmi,
} from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';

interface Context {
  readonly hostArchitecture?: string;
  readonly kubeVirtConfiguration?: KubeVirtConfiguration;
  readonly generatedFirmwareUUID?: string;
}

/**
 * Over the folders of `converter`: admission defaults and host disks, applied to `vmi.json`, must give
 * `vmi.launcher.json`.
 */
export async function* runVmiDefaults(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const path = `${name}/vmi.launcher.json`;
    if (!files.has(path)) continue;
    yield await runCase(name, () => diffJson(files.json(path), parseJson(renderJson(nodeVmi(files, name)))));
  }
}

/** The VMI of a case as the node hands it to the launcher. */
export function nodeVmi(files: Files, name: string): Vmi {
  const vmi = parseVmiJson(files.text(`${name}/vmi.json`));
  const context = files.json(`${name}/context.json`) as Context;
  const cluster = clusterDefaults(context.hostArchitecture ?? 'amd64', context.kubeVirtConfiguration);
  return replacePvcByHostDisk(applyVmiDefaults(vmi, cluster, context.generatedFirmwareUUID ?? ''));
}
