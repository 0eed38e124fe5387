import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Circumstances, ConverterOptions } from '../converter/circumstances.ts';
import { createCircumstanceCollector } from '../converter/collect-circumstances.ts';
import { convertVmi } from '../converter/convert.ts';
import type { ConverterContext } from '../converter/context.ts';
import { resolveConverterContext } from '../converter/resolve-context.ts';
import { LauncherError } from '../errors.ts';
import type { TargetPreparation } from '../migration/target.ts';
import { linkImageVolumes } from './image-volumes.ts';
import type { PreparedDisks, PreStartHooks } from './prepare.ts';
import { prepareDisks, prepareIncomingSeed } from './prepare.ts';
import { ensureTrackingOverlays } from './tracking-overlays.ts';
import type { VmiPreparationConfig, VmiPreparationDeps } from './vmi-preparation.ts';

interface Collected {
  readonly circumstances: Circumstances;
  readonly context: ConverterContext;
}

async function prefixed<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw LauncherError.from(caught, 'ConvertFailed', doing);
  }
}

/** Creates what makes a pod ready for a VM that comes from another node. */
export function createTargetPreparation(deps: VmiPreparationDeps, config: VmiPreparationConfig): TargetPreparation {
  const collector = createCircumstanceCollector(deps, config.facts);

  async function collect(vmi: Vmi, options: ConverterOptions | undefined): Promise<Collected> {
    const found = await prefixed('Failed to generate libvirt domain from VMI spec: ', async () => {
      const circumstances = await collector.collect(vmi, {
        allowEmulation: config.allowEmulation,
        options,
        isMigrationTarget: true,
        cbtOverlays: new Map(),
      });
      return { circumstances, context: resolveConverterContext(vmi, circumstances) };
    });
    // Nothing is made for a VM that cannot be.
    const circumstances = { ...found.circumstances, cbtOverlays: await ensureTrackingOverlays(deps, vmi) };
    return { circumstances, context: { ...found.context, circumstances } };
  }

  async function preStart(
    vmi: Vmi,
    spec: DomainSpec,
    circumstances: Circumstances,
    options: ConverterOptions | undefined,
    log: Logger,
  ): Promise<PreparedDisks> {
    const hooks: PreStartHooks = {
      prepareNetwork: (owner, domain) => deps.prepareNetwork(owner, domain, options),
      ...(deps.preCloudInitIso === undefined ? {} : { preCloudInitIso: deps.preCloudInitIso }),
    };
    try {
      return await prepareDisks({ ...deps, log }, vmi, spec, circumstances, hooks);
    } catch (caught) {
      throw LauncherError.from(caught, 'DiskFailed', 'pre-start pod-setup failed: ');
    }
  }

  return {
    async prepareTarget(vmi, options, log) {
      if (config.usesImageVolumes) {
        await linkImageVolumes(deps, vmi).catch((caught: unknown) => {
          log.error({ reason: caught }, 'failed to link image volumes');
        });
      }
      const { circumstances, context } = await collect(vmi, options);
      const wanted = await prefixed('conversion failed: ', async () => convertVmi(vmi, context).Spec);
      const { spec, cloudInit } = await preStart(vmi, wanted, circumstances, options, log);
      return { spec, prepareSeed: () => prepareIncomingSeed({ ...deps, log }, vmi, cloudInit, spec) };
    },
  };
}
