import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { InvocationContext, Plugins } from './plugins.ts';
import type { Sidecars } from './sidecars.ts';

/** Everybody who may change a domain before libvirt gets it. */
export interface DomainHooks {
  /** Lets sidecars, then plugins change a domain, and returns it as XML. @throws {LauncherError} `HookFailed` */
  render(vmi: Vmi, spec: DomainSpec, context: InvocationContext): Promise<string>;
}

/** What the hooks need. */
export interface DomainHooksDeps {
  /** None in most launchers. */
  readonly sidecars: Pick<Sidecars, 'onDefineDomain'> | undefined;
  readonly plugins: Pick<Plugins, 'apply'>;
  readonly renderSpec: (spec: DomainSpec) => string;
}

/** Creates the hooks of a launcher. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go` */
export function createDomainHooks({ sidecars, plugins, renderSpec }: DomainHooksDeps): DomainHooks {
  return {
    async render(vmi, spec, context) {
      const xml = renderSpec(spec);
      const changed = sidecars === undefined ? xml : await sidecars.onDefineDomain(vmi, xml);
      return plugins.apply(vmi, changed, context);
    },
  };
}
