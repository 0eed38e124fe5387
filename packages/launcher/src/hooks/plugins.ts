import { parseDomainXml, parseDuration, parseJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Plugin } from '@virtwire/vm-model/payloads';
import { plugins as pluginsPayload } from '@virtwire/vm-model/payloads';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError, textOf } from '../errors.ts';
import type { ExpressionThread } from './cel/expression-thread.ts';
import type { PluginSidecarCall, PluginSidecarDeps } from './plugin-sidecar.ts';

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

/** What all plugins get that change one domain. */
interface Work {
  readonly vmiJson: string;
  readonly invocationContext: InvocationContext;
  readonly expressions: ExpressionThread;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const IGNORE = 'Ignore';

/** Creates an empty list of plugins. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/plugins/pipeline.go` */
export function createPlugins(deps: PluginsDeps): Plugins {
  const { log } = deps;
  let list: readonly Plugin[] = [];

  async function applyHook(plugin: Plugin, hook: DomainHook, xml: string, work: Work): Promise<string> {
    if (hook.cel != null) return work.expressions.mutation(hook.cel.expression, xml);
    if (hook.sidecar == null) return xml;
    return applySidecar(deps, {
      pluginName: nameOf(plugin),
      socketPath: hook.sidecar.socketPath,
      timeoutMs: timeoutOf(hook),
      domainXML: xml,
      ...work,
    });
  }

  async function applyPlugin(plugin: Plugin, xml: string, work: Work): Promise<string> {
    const name = nameOf(plugin);
    const { expressions } = work;
    if (!(await isMet(expressions, plugin.spec.condition, xml, `plugin ${name}`))) {
      log.info(`Skipping plugin ${name}: condition not met`);
      return xml;
    }
    let current = xml;
    for (const [index, hook] of (plugin.spec.domainHooks ?? []).entries()) {
      if (!(await isMet(expressions, hook.condition, current, `plugin ${name} hook ${index}`))) continue;
      try {
        current = await applyHook(plugin, hook, current, work);
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
      const vmiJson = renderVmiJson(vmi);
      const { createExpressionThread } = await import('./cel/expression-thread.ts');
      await using expressions = createExpressionThread(vmiJson);
      let current = xml;
      for (const plugin of sorted)
        current = await applyPlugin(plugin, current, { vmiJson, invocationContext: context, expressions });
      log.info(`Successfully applied domain hooks from ${sorted.length} plugin(s)`);
      return current;
    },
  };
}

async function applySidecar(deps: PluginSidecarDeps, call: PluginSidecarCall): Promise<string> {
  // Most launchers have no plugins, and do without the code for their calls.
  const { callPluginSidecar } = await import('./plugin-sidecar.ts');
  const answer = await callPluginSidecar(deps, call);
  try {
    parseDomainXml(answer);
  } catch (caught) {
    throw LauncherError.from(caught, 'HookFailed', 'unmarshal sidecar response: ');
  }
  return answer;
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

/** A condition that cannot be evaluated fails the plugin whatever its failure strategy. */
async function isMet(expressions: ExpressionThread, condition: string, xml: string, whose: string): Promise<boolean> {
  if (condition === '') return true;
  try {
    return await expressions.condition(condition, xml);
  } catch (caught) {
    throw LauncherError.from(caught, 'HookFailed', `${whose} condition evaluation failed: `);
  }
}
