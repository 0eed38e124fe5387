import { parseDomainXml, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { callOnDefineDomain, callPreCloudInitIso, callSidecarShutdown } from '@virtwire/shared-proto/hooks';
import type { CloudInitHookVersion } from '@virtwire/shared-proto/hooks';
import type { CloudInitData } from '../disks/cloud-init-source.ts';
import { LauncherError, textOf } from '../errors.ts';
import { parseHookData, renderHookData } from './cloud-init-json.ts';
import type { Sidecar } from './collect.ts';

/** The hook sidecars of a launcher. */
export interface Sidecars {
  /**
   * Lets every sidecar that wants to change the domain, one after the other.
   *
   * @param xml the domain, indented by tabs.
   * @returns the last one's XML, word for word: what only libvirt knows stays in it.
   * @throws {LauncherError} `HookFailed` when a sidecar fails, or what it answers is no domain.
   */
  onDefineDomain(vmi: Vmi, xml: string): Promise<string>;
  /** Lets the first sidecar that can change cloud-init's seed data. @throws {LauncherError} `HookFailed` */
  readonly preCloudInitIso: (vmi: Vmi, data: CloudInitData | undefined) => Promise<CloudInitData | undefined>;
  /** Tells the sidecars that the VM has ended. Never fails. */
  shutdown(): Promise<void>;
}

const TIMEOUTS = { dialTimeoutMs: 2_000, timeoutMs: 60_000 };

/** Creates the calls to sidecars that were collected. `@source KubeVirt v1.9.0 pkg/hooks/manager.go` */
export function createSidecars(sidecars: readonly Sidecar[], log: Logger): Sidecars {
  const at = (hookPoint: string): readonly Sidecar[] => sidecars.filter((s) => s.hookPoints.includes(hookPoint));
  const unsupported = ({ version }: Sidecar): void => log.error(`Unsupported callback version: ${version}`);
  return {
    async onDefineDomain(vmi, xml) {
      let current = xml;
      for (const sidecar of at('OnDefineDomain')) current = await define(sidecar, vmi, current, log);
      return current;
    },
    async preCloudInitIso(vmi, data) {
      if (data === undefined) return undefined;
      for (const sidecar of at('PreCloudInitIso')) {
        const { version } = sidecar;
        if (version === 'v1alpha1') unsupported(sidecar);
        else return await changeSeed(sidecar, version, vmi, data, log);
      }
      return data;
    },
    async shutdown() {
      await Promise.all(
        at('Shutdown').map(async (sidecar) => {
          if (sidecar.version !== 'v1alpha3') return unsupported(sidecar);
          try {
            await callSidecarShutdown(sidecar.socketPath, TIMEOUTS);
          } catch (caught) {
            log.error({ reason: textOf(caught) }, 'Failed to run Shutdown');
          }
        }),
      );
    },
  };
}

async function define({ socketPath, version }: Sidecar, vmi: Vmi, xml: string, log: Logger): Promise<string> {
  let answer: Uint8Array;
  try {
    const params = { domainXML: Buffer.from(xml), vmi: Buffer.from(renderVmiJson(vmi)) };
    answer = await callOnDefineDomain(socketPath, version, params, TIMEOUTS);
  } catch (caught) {
    log.error({ reason: textOf(caught) }, 'Failed to call OnDefineDomain');
    throw LauncherError.from(caught, 'HookFailed', '');
  }
  const changed = Buffer.from(answer).toString('utf8');
  try {
    parseDomainXml(changed);
  } catch (caught) {
    throw LauncherError.from(caught, 'HookFailed', `hook sidecar ${socketPath} did not answer with a domain: `);
  }
  return changed;
}

async function changeSeed(
  { socketPath }: Sidecar,
  version: CloudInitHookVersion,
  vmi: Vmi,
  data: CloudInitData,
  log: Logger,
): Promise<CloudInitData> {
  try {
    const params = { ...renderHookData(vmi, data), vmi: Buffer.from(renderVmiJson(vmi)) };
    return parseHookData(data, await callPreCloudInitIso(socketPath, version, params, TIMEOUTS));
  } catch (caught) {
    log.error({ reason: textOf(caught) }, 'Failed to call PreCloudInitIso');
    throw LauncherError.from(caught, 'HookFailed', '');
  }
}
