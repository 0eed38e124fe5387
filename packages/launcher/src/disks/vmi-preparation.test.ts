import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import { type Vmi, emptyDomainSpec, parseDomainXml, renderDomainXml } from '@virtwire/vm-model';

import { type ConverterOptionsJson, circumstancesFromJson } from '../converter/circumstances-json.ts';
import { textOf } from '../errors.ts';
import { readCases } from '../testing/bundle.ts';
import { type DiskWorld, type DiskWorldSetup, type ToolRun, createDiskWorld } from '../testing/disk-world.ts';
import type { VmiPreparationDeps } from './vmi-preparation.ts';
import { createVmiPreparation } from './vmi-preparation.ts';

interface Input extends DiskWorldSetup {
  readonly title: string;
  readonly vmi: Vmi;
  readonly options?: ConverterOptionsJson;
  readonly config?: {
    readonly imageVolume?: boolean;
    readonly directIO?: boolean;
    readonly allowEmulation?: boolean;
    readonly podCPUSet?: readonly number[];
  };
  readonly domain?: unknown;
  readonly noHypervisorDevice?: boolean;
  readonly answers?: Readonly<Record<string, readonly { readonly xml?: string; readonly error?: unknown }[]>>;
  readonly steps: readonly { readonly rpc?: string; readonly vmi?: Vmi; readonly options?: ConverterOptionsJson }[];
}

interface Output {
  readonly steps: readonly {
    readonly trace: readonly (Partial<ToolRun> & { readonly libvirt?: string; readonly xml?: string })[] | null;
    readonly response?: { readonly message?: string; readonly success?: boolean };
    readonly panic?: string;
  }[];
}

/** Cases whose first step prepares a new domain, and whose outcome libvirt and the network do not change. */
function preparationCases(family: string): readonly (readonly [string, Input, Output])[] {
  return readCases<Input, Output>(family)
    .filter(({ input, output }) => {
      const isSync = input.steps[0]?.rpc === 'SyncVirtualMachine';
      const panics = output.steps[0]?.panic !== undefined;
      const hasNetwork = (input.vmi.spec.domain.devices.interfaces ?? []).length > 0;
      const isScripted = Object.keys(input.answers ?? {}).some(
        (call) => call !== 'GetXMLDesc' && call !== 'CreateWithFlags',
      );
      // Device nodes of the pod cannot be made below a temporary directory; the converter's cases cover them.
      const hasDevices = Object.values(input.files ?? {}).some(({ block }) => block === true);
      return (
        isSync &&
        !panics &&
        input.domain === undefined &&
        !isScripted &&
        !hasDevices &&
        (!hasNetwork || family === 'launcher-cloudinit')
      );
    })
    .map(({ name, input, output }) => [`${name}: ${input.title}`, input, output] as const);
}

function preparationIn(
  world: DiskWorld,
  input: Pick<Input, 'vmi' | 'config' | 'noHypervisorDevice'>,
  extra: Partial<Pick<VmiPreparationDeps, 'makesImageEarly' | 'createTrackingOverlay'>> = {},
): ReturnType<typeof createVmiPreparation> {
  const { hostArchitecture, hypervisor, environment } = circumstancesFromJson(input.vmi, {}, undefined);
  return createVmiPreparation(
    {
      ...world.deps,
      ...extra,
      readPodCpuSet: () => Promise.resolve(input.config?.podCPUSet ?? [0, 1, 2, 3]),
      prepareNetwork: (_vmi, spec) => Promise.resolve(spec),
    },
    {
      allowEmulation: input.config?.allowEmulation ?? true,
      usesImageVolumes: input.config?.imageVolume ?? false,
      facts: {
        hostArchitecture,
        hypervisor,
        environment,
        hypervisorDeviceAvailable: input.noHypervisorDevice !== true,
        allowCrossArchEmulation: false,
        firmwareAutoSelection: false,
        firmwareDir: '',
        logVerbosity: 2,
        paths: world.deps.paths,
        hasLibvirtHookServer: false,
      },
    },
  );
}

async function prepare(world: DiskWorld, input: Input): Promise<{ readonly xml?: string; readonly error?: string }> {
  const step = input.steps[0];
  const vmi = step?.vmi ?? input.vmi;
  const options = circumstancesFromJson(vmi, {}, step?.options ?? input.options).options;
  const preparation = preparationIn(world, input);
  let xml: string | undefined;
  try {
    const converted = await preparation.convert(vmi, options);
    const prepared = await preparation.preStart(vmi, converted, options, world.deps.log);
    const defined = input.answers?.['GetXMLDesc']?.find(({ xml }) => xml !== undefined)?.xml;
    const spec = defined === undefined ? emptyDomainSpec() : parseDomainXml(defined);
    xml = world.inPod(renderDomainXml(prepared, { indent: '\t' }));
    await preparation.beforeStart(vmi, spec, world.deps.log);
    return { xml };
  } catch (error) {
    return { ...(xml === undefined ? {} : { xml }), error: world.inPod(textOf(error)) };
  }
}

function normalise(run: Partial<ToolRun>): unknown {
  const media = Object.entries(run.media ?? {}).map(([name, content]) => {
    return [name, /meta.?data/.test(name) ? (JSON.parse(content) as unknown) : content] as const;
  });
  return { exec: run.exec, args: run.args, exitCode: run.exitCode, media: Object.fromEntries(media), modes: run.modes };
}

describe.each(['launcher-cloudinit', 'launcher-sync'])(
  '%s: what the launcher of v1.9.0 made before its start',
  (family) => {
    test.each(preparationCases(family))('%s', async (_name, input, output) => {
      using world = createDiskWorld({ ...input, hasDirectIo: input.config?.directIO ?? true });
      const result = await prepare(world, input);
      const step = output.steps[0];
      const trace = step?.trace ?? [];
      const tools = trace.filter(
        ({ exec, args }) => exec !== undefined && !(exec === 'qemu-img' && args?.[0] === 'info'),
      );
      expect(world.runs.map(normalise)).toEqual(tools.map(normalise));
      const isOwnFailure = step?.response?.success !== true && input.answers === undefined;
      expect(result.error).toBe(isOwnFailure ? step?.response?.message : undefined);
      const defined = trace.find(({ libvirt }) => libvirt === 'DomainDefineXML')?.xml;
      if (input.vmi.spec.domain.devices.autoattachPodInterface === false && defined !== undefined) {
        expect(result.xml).toBe(defined);
      }
    });
  },
);

test('a VM whose container disk is of no use has no overlay made that tracks another disk', async () => {
  const image = '/var/run/kubevirt/container-disks/disk_1.img';
  using world = createDiskWorld({ qemuImgInfo: { [image]: { format: 'vmdk' } } });
  const volumes = [
    { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'os', containerDisk: { image: 'i' } },
  ];
  const vmi: Vmi = {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: {} }, volumes },
    status: { runtimeUser: 107, changedBlockTracking: { state: 'Initializing' } },
  };
  let made = 0;
  const createTrackingOverlay = async (): Promise<void> => {
    made++;
  };
  const preparation = preparationIn(world, { vmi }, { createTrackingOverlay });
  await expect(preparation.convert(vmi, undefined)).rejects.toThrow('unsupported image format: vmdk');
  expect(made).toBe(0);
});

describe('the cloud-init image made early', () => {
  const disks = [{ name: 'ci', disk: { bus: 'virtio' as const } }];
  const noCloud = { name: 'ci', cloudInitNoCloud: { userData: 'x' } };
  const configDrive = { name: 'ci', cloudInitConfigDrive: { userData: 'x' } };
  const tagged = [{ name: 'n', deviceName: 'd/d', tag: 't' }];

  test.each([
    ['a seed without addresses', noCloud, tagged, 1],
    ['a config drive where nothing is tagged', configDrive, [], 1],
    ['not one that shows the addresses of tagged devices', configDrive, tagged, 0],
  ])('%s', async (_title, volume, gpus, early) => {
    using world = createDiskWorld({});
    const vmi: Vmi = {
      metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
      spec: { domain: { devices: { disks, gpus } }, volumes: [volume] },
    };
    const preparation = preparationIn(world, { vmi }, { makesImageEarly: true });
    const { log } = world.deps;
    await preparation.preStart(vmi, emptyDomainSpec(), undefined, log);
    await sleep(50);
    expect(world.runs).toHaveLength(early);
    await preparation.beforeStart(vmi, emptyDomainSpec(), log);
    expect(world.runs.map(({ exec }) => exec)).toEqual(['xorrisofs']);
  });
});
