import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import {
  type DomainSpec,
  parseDomainJson,
  parseDomainXml,
  parseJson,
  parseVmiJson,
  renderDomainJson,
  renderDomainXml,
  renderJson,
} from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { Architecture } from './architecture.ts';
import { arbitraryConversion, arbitraryConversionOn } from '../testing/arbitrary-vmi.ts';
import { readFiles } from '../testing/bundle.ts';
import { type CircumstancesJson, type ConverterOptionsJson, circumstancesFromJson } from './circumstances-json.ts';
import { convertVmi } from './convert.ts';
import { renderPciAddress } from './pci-address.ts';
import { countHotplugPorts } from './ports.ts';
import { resolveConverterContext } from './resolve-context.ts';

const files = readFiles('converter');
const names = [...files.keys()]
  .filter((path) => path.endsWith('/vmi.launcher.json'))
  .map((path) => path.split('/')[0] ?? '');

function convert(name: string): ReturnType<typeof convertVmi> {
  const vmi = parseVmiJson(renderJson(files.get(`${name}/vmi.launcher.json`)));
  const circumstances = circumstancesFromJson(
    vmi,
    files.get(`${name}/context.json`) as CircumstancesJson,
    files.get(`${name}/options.json`) as ConverterOptionsJson | undefined,
  );
  return convertVmi(vmi, resolveConverterContext(vmi, circumstances));
}

describe('what the launcher of v1.9.0 made of VMIs', () => {
  test.each(names)('%s', (name) => {
    const error = files.get(`${name}/error.txt`) as string | undefined;
    const xml = files.get(`${name}/domain.xml`) as string | undefined;
    if (xml === undefined) {
      expect(() => convert(name)).toThrow(error?.startsWith('panic:') === true ? LauncherError : error);
      return;
    }
    const domain = convert(name);
    expect(renderDomainXml(domain.Spec, { indent: '\t' })).toBe(xml);
    expect(parseJson(renderDomainJson(domain))).toEqual(files.get(`${name}/domain.json`));
    const vmi = parseVmiJson(renderJson(files.get(`${name}/vmi.launcher.json`)));
    expect(countHotplugPorts(vmi, domain.Spec)).toEqual(files.get(`${name}/ports.json`));
  });
});

/** What holds for every VM of an architecture. */
function checkArchitecture(architecture: Architecture, { Devices, CPU, OS, Features, VCPUs }: DomainSpec): void {
  const models = [...(Devices.Disks ?? []), ...(Devices.Controllers ?? [])].map(({ Model }) => Model ?? '');
  const isS390x = architecture === 's390x';
  expect(models.some((model) => model.startsWith('virtio-') && model.includes('transitional')) && isS390x).toBe(false);
  expect(Devices.Controllers?.find(({ Type }) => Type === 'usb')?.Model).toSatisfy((model: string) =>
    architecture === 'amd64' ? true : model === (isS390x ? 'none' : 'qemu-xhci'),
  );
  expect(OS.SMBios !== undefined).toBe(!isS390x);
  expect(CPU.Features?.some(({ Name, Policy }) => Name === 'mpx' && Policy === 'disable') ?? false).toSatisfy(
    (disables: boolean) => architecture === 'amd64' || !disables,
  );
  expect(Features?.VMPort !== undefined && architecture !== 'amd64').toBe(false);
  expect(VCPUs !== undefined && architecture === 'arm64', 'arm64 plugs no processors').toBe(false);
}

describe('any VMI that the API takes', () => {
  test.each<[Architecture, string]>([
    ['amd64', 'x86_64'],
    ['arm64', 'aarch64'],
    ['s390x', 's390x'],
  ])('of %s converts, the same way every time, to XML that reads back', (architecture, osArch) => {
    fc.assert(
      fc.property(arbitraryConversionOn(architecture), ({ vmi, circumstances }) => {
        const before = structuredClone(vmi);
        const once = convertVmi(vmi, resolveConverterContext(vmi, circumstances));
        const xml = renderDomainXml(once.Spec);
        expect(renderDomainXml(convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec)).toBe(xml);
        expect(vmi, 'the VMI is not touched').toEqual(before);
        const read = parseDomainXml(xml);
        const json = renderDomainJson(once);
        expect(renderDomainJson(parseDomainJson(json)), 'a handler reads what it is told').toBe(json);
        // The first reading may fill in what libvirt would; from then on nothing is lost.
        const kept = renderDomainXml(read);
        expect(renderDomainXml(parseDomainXml(kept))).toBe(kept);
        expect(read.Devices.Disks?.length ?? 0).toBe(once.Spec.Devices.Disks?.length ?? 0);
        expect(read.Name).toBe(once.Spec.Name);
        expect(read.OS.Type.Arch).toBe(osArch);
        checkArchitecture(architecture, read);
      }),
      { numRuns: 300 },
    );
  });

  test('names only IO threads that exist, whether for disks, controllers or pins', () => {
    fc.assert(
      fc.property(arbitraryConversion, ({ vmi, circumstances }) => {
        const { Devices, IOThreads, CPUTune } = convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec;
        const threads = [...(Devices.Disks ?? []), ...(Devices.Controllers ?? [])].flatMap(({ Driver }) => [
          Driver?.IOThread ?? 1,
          ...(Driver !== undefined && 'IOThreads' in Driver ? (Driver.IOThreads?.IOThread ?? []) : []).map(
            ({ Id }) => Id ?? 0,
          ),
        ]);
        const pinned = (CPUTune?.IOThreadPin ?? []).map(({ IOThread }) => IOThread ?? 0);
        expect(Math.min(...threads, ...pinned, 1)).toBe(1);
        expect(Math.max(...threads, ...pinned, 1)).toBeLessThanOrEqual(Math.max(1, IOThreads?.IOThreads ?? 0));
        if (IOThreads === undefined) expect(pinned).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test.each<Architecture>(['amd64', 'arm64', 's390x'])(
    'of %s has no two devices of one name, target, place or turn to boot',
    (architecture) => {
      fc.assert(
        fc.property(arbitraryConversionOn(architecture), ({ vmi, circumstances }) => {
          const { Devices } = convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec;
          const { Disks = [], Interfaces = [], HostDevices = [], Controllers = [], Inputs = [] } = Devices;
          const placed = [...Disks, ...Interfaces, ...HostDevices, ...Controllers, ...Inputs];
          const once = (values: readonly (string | undefined)[]): void => {
            const known = values.filter((value) => value !== undefined);
            expect(new Set(known).size, known.join(' ')).toBe(known.length);
          };
          once([...Disks, ...Interfaces, ...HostDevices, ...Inputs].map(({ Alias }) => Alias?.Name));
          once(Disks.map(({ Target }) => Target?.Device));
          once(Controllers.map(({ Type, Index }) => `${Type ?? ''} ${Index ?? ''}`));
          once(placed.map(({ Address }) => (Address?.Type === 'pci' ? renderPciAddress(Address) : undefined)));
          once(Disks.map(({ Address }) => (Address?.Type === 'drive' ? Address.Unit : undefined)));
          once([...Disks, ...Interfaces, ...HostDevices].map(({ BootOrder }) => BootOrder?.Order?.toString()));
        }),
        { numRuns: 200 },
      );
    },
  );

  test('pins every vCPU of a VM with host CPUs of its own to one of its pod, and none to that of another', () => {
    fc.assert(
      fc.property(arbitraryConversion, ({ vmi, circumstances }) => {
        fc.pre(vmi.spec.domain.cpu?.dedicatedCpuPlacement === true);
        const { CPUTune, CPU } = convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec;
        const vcpus = (CPUTune?.VCPUPin ?? []).map(({ CPUSet }) => Number(CPUSet));
        const emulator = (CPUTune?.EmulatorPin?.CPUSet ?? '').split(',').filter((cpu) => cpu !== '');
        const { sockets = 1, cores = 1, threads = 1 } = vmi.spec.domain.cpu;
        expect(vcpus).toHaveLength(sockets * cores * threads);
        const taken = [...vcpus, ...emulator.map(Number)];
        expect(new Set(taken).size).toBe(taken.length);
        expect(taken.filter((cpu) => !circumstances.podCpuSet.includes(cpu))).toEqual([]);
        if (vmi.spec.domain.cpu.numa === undefined) return;
        const celled = (CPU.NUMA?.Cells ?? []).flatMap(({ CPUs = '' }) => CPUs.split(',').map(Number));
        expect(celled.sort((a, b) => a - b)).toEqual(vcpus.map((_cpu, vcpu) => vcpu));
      }),
      { numRuns: 200 },
    );
  });

  test('a context serves any number of conversions: none leaves a trace in it', () => {
    fc.assert(
      fc.property(arbitraryConversion, ({ vmi, circumstances }) => {
        const context = resolveConverterContext(vmi, circumstances);
        const first = renderDomainJson(convertVmi(vmi, context));
        expect(renderDomainJson(convertVmi(vmi, context))).toBe(first);
      }),
      { numRuns: 50 },
    );
  });
});
