import { parseVmiJson, renderDomainXml, renderJson } from '@virtwire/vm-model';
import type { CircumstancesJson, ConverterOptionsJson } from '../src/index.ts';
import { circumstancesFromJson, convertVmi, LauncherError, resolveConverterContext } from '../src/index.ts';
import { readFiles } from '../src/testing/bundle.ts';

const ROUNDS = 50;

/** How long a conversion takes, from the JSON of a request to the XML for libvirt. */
export interface ConversionTimes {
  readonly vmis: number;
  /** Over all VMIs and rounds. */
  readonly medianMs: number;
  /** Of the slowest VMI: its median over the rounds. */
  readonly slowestMs: number;
  readonly slowest: string;
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** Converts every recorded VMI many times, after the code is warm. */
export function timeConversions(): ConversionTimes {
  const files = readFiles('converter');
  const byName = new Map<string, number[]>();
  for (let round = -ROUNDS; round < ROUNDS; round++) {
    for (const path of files.keys()) {
      if (!path.endsWith('/vmi.launcher.json')) continue;
      const name = path.slice(0, path.indexOf('/'));
      const json = renderJson(files.get(path));
      const context = files.get(`${name}/context.json`) as CircumstancesJson;
      const options = files.get(`${name}/options.json`) as ConverterOptionsJson | undefined;
      const startedMs = performance.now();
      try {
        const vmi = parseVmiJson(json);
        const circumstances = circumstancesFromJson(vmi, context, options);
        renderDomainXml(convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec);
      } catch (error) {
        if (!(error instanceof LauncherError)) throw error;
      }
      const tookMs = performance.now() - startedMs;
      if (round >= 0) byName.set(name, [...(byName.get(name) ?? []), tookMs]);
    }
  }
  const medians = [...byName].map(([name, times]) => [name, median([...times])] as const);
  const [slowest, slowestMs] = medians.reduce((a, b) => (b[1] > a[1] ? b : a));
  return { vmis: byName.size, medianMs: median([...byName.values()].flat()), slowest, slowestMs };
}
