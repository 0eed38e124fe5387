import fc from 'fast-check';
import { expect, test } from 'vitest';

import {
  parseJson,
  parseVmiJson,
  renderDomainJson,
  renderDomainXml,
  renderJson,
  type Vmi,
  VmModelError,
} from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { arbitraryConversionOn } from '../testing/arbitrary-vmi.ts';
import { readFiles } from '../testing/bundle.ts';
import { changeJson, jsonChanges } from '../testing/mutate-json.ts';
import type { Architecture } from './architecture.ts';
import type { Circumstances } from './circumstances.ts';
import { type CircumstancesJson, type ConverterOptionsJson, circumstancesFromJson } from './circumstances-json.ts';
import { convertVmi } from './convert.ts';
import { countHotplugPorts } from './ports.ts';
import { resolveConverterContext } from './resolve-context.ts';

const files = readFiles('converter');
const names = [...files.keys()].flatMap((path) =>
  path.endsWith('/vmi.launcher.json') ? [path.slice(0, path.indexOf('/'))] : [],
);

/** Converts JSON as a launcher would; what it is refused with, or undefined. */
function refusal(json: string, circumstancesOf: (vmi: Vmi) => Circumstances): string | undefined {
  try {
    const vmi = parseVmiJson(json);
    const { Spec, ...rest } = convertVmi(vmi, resolveConverterContext(vmi, circumstancesOf(vmi)));
    countHotplugPorts(vmi, Spec);
    renderDomainXml(Spec);
    renderDomainJson({ Spec, ...rest });
    return undefined;
  } catch (caught) {
    const isDomainError = caught instanceof LauncherError || caught instanceof VmModelError;
    if (!isDomainError) throw caught;
    return caught.message;
  }
}

test('a VMI with anything changed is converted or refused with a reason, never with a crash', () => {
  fc.assert(
    fc.property(fc.constantFrom(...names), jsonChanges, (name, changes) => {
      const json = renderJson(changeJson(files.get(`${name}/vmi.launcher.json`), changes)) as string | undefined;
      const reason = refusal(json ?? 'null', (vmi) =>
        circumstancesFromJson(
          vmi,
          files.get(`${name}/context.json`) as CircumstancesJson,
          files.get(`${name}/options.json`) as ConverterOptionsJson | undefined,
        ),
      );
      expect(reason === undefined || reason.length > 0).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test.each<Architecture>(['amd64', 'arm64', 's390x'])(
  'nor is a VMI of %s with any devices that is changed on its way to a launcher that was made for it',
  (architecture) => {
    fc.assert(
      fc.property(arbitraryConversionOn(architecture), jsonChanges, ({ vmi, circumstances }, changes) => {
        const json = renderJson(changeJson(parseJson(renderJson(vmi)), changes)) as string | undefined;
        const reason = refusal(json ?? 'null', () => circumstances);
        expect(reason === undefined || reason.length > 0).toBe(true);
      }),
      { numRuns: 500 },
    );
  },
);
