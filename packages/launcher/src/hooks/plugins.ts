import { parseDomainXml, parseDuration, parseJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Plugin } from '@virtwire/vm-model/payloads';
import { plugins as pluginsPayload } from '@virtwire/vm-model/payloads';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError, textOf } from '../errors.ts';
import type { PluginSidecarDeps } from './plugin-sidecar.ts';

/** What a domain is changed for. */
export type InvocationContext = 'Boot' | 'MigrationTarget';

/** What plugins need. */
export interface PluginsDeps extends PluginSidecarDeps {
  readonly log: Logger;
}

/** The plugins that change domains, as the handler listed them last. */
export interface Plugins {
  /**
   * Replaces the list; without any text it is empty then.
   *
   * @throws {LauncherError} `BadRequest`; the list stays as it is.
   */
  set(json: string): void;
  /**
   * Lets the plugins change a domain, by their names, each by its hooks in order.
   *
   * @throws {LauncherError} `HookFailed` when one fails that may not.
   */
  apply(vmi: Vmi, xml: string, context: InvocationContext): Promise<string>;
}

type DomainHook = NonNullable<Plugin['spec']['domainHooks']>[number];

const DEFAULT_TIMEOUT_MS = 30_000;
const IGNORE = 'Ignore';

/** Creates an empty list of plugins. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/plugins/pipeline.go` */
export function createPlugins(deps: PluginsDeps): Plugins {
  const { log } = deps;
  let list: readonly Plugin[] = [];

  async function applyHook(plugin: Plugin, hook: DomainHook, vmi: Vmi, xml: string, context: InvocationContext) {
    if (hook.cel != null) throw notYet('changes by CEL expressions');
    if (hook.sidecar == null) return xml;
    // Most launchers have no plugins, and do without the code for their calls.
    const { callPluginSidecar } = await import('./plugin-sidecar.ts');
    const answer = await callPluginSidecar(deps, {
      pluginName: nameOf(plugin),
      socketPath: hook.sidecar.socketPath,
      timeoutMs: timeoutOf(hook),
      domainXML: xml,
      vmiJson: renderVmiJson(vmi),
      invocationContext: context,
    });
    try {
      parseDomainXml(answer);
    } catch (caught) {
      throw LauncherError.from(caught, 'HookFailed', 'unmarshal sidecar response: ');
    }
    return answer;
  }

  async function applyPlugin(plugin: Plugin, vmi: Vmi, xml: string, context: InvocationContext): Promise<string> {
    const name = nameOf(plugin);
    checkCondition(plugin.spec.condition, `plugin ${name}`);
    let current = xml;
    for (const [index, hook] of (plugin.spec.domainHooks ?? []).entries()) {
      checkCondition(hook.condition, `plugin ${name} hook ${index}`);
      try {
        current = await applyHook(plugin, hook, vmi, current, context);
      } catch (caught) {
        if ((hook.failureStrategy || plugin.spec.failureStrategy) !== IGNORE) {
          throw LauncherError.from(caught, 'HookFailed', `plugin ${name} hook ${index} failed: `);
        }
        log.warn(`Plugin ${name} hook ${index} failed (ignored): ${textOf(caught)}`);
      }
    }
    return current;
  }

  return {
    set(json) {
      list = json === '' ? [] : parsePlugins(json);
    },
    async apply(vmi, xml, context) {
      if (list.length === 0) return xml;
      const sorted = [...list].sort((a, b) => Buffer.compare(Buffer.from(nameOf(a)), Buffer.from(nameOf(b))));
      log.info(`Evaluating domain hooks from plugins: [${sorted.map(nameOf).join(', ')}]`);
      let current = xml;
      for (const plugin of sorted) current = await applyPlugin(plugin, vmi, current, context);
      log.info(`Successfully applied domain hooks from ${sorted.length} plugin(s)`);
      return current;
    },
  };
}

function parsePlugins(json: string): readonly Plugin[] {
  try {
    return parseJson(json) === null ? [] : (pluginsPayload.parse(json) ?? []);
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', 'failed to deserialize plugins from options: ');
  }
}

function nameOf({ metadata }: Plugin): string {
  const { name } = metadata as { readonly name?: unknown };
  return typeof name === 'string' ? name : '';
}

function timeoutOf({ timeout }: DomainHook): number {
  return timeout === '' ? DEFAULT_TIMEOUT_MS : parseDuration(timeout);
}

function notYet(what: string): LauncherError {
  return new LauncherError('NotSupportedYet', `${what} are not supported by this launcher yet`);
}

function checkCondition(condition: string, whose: string): void {
  if (condition === '') return;
  throw LauncherError.from(notYet('CEL expressions'), 'HookFailed', `${whose} condition evaluation failed: `);
}
