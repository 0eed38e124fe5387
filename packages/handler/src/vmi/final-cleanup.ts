import type { DomainStore } from '../domain-watch/domain-store.ts';
import { errorText, HandlerError } from '../errors.ts';
import { ownerOf } from '../launchers/launcher.ts';
import type { Launchers } from '../launchers/launchers.ts';
import type { Vmi } from '../model.ts';
import type { NodeParts } from '../prepare/parts.ts';
import type { Pass } from './pass.ts';

/** What a final clean-up works with. */
export interface FinalCleanupDeps {
  readonly launchers: Launchers;
  readonly parts: NodeParts;
  readonly domains: DomainStore;
  /** Told when everything of a VMI was removed from this node. */
  readonly onCleanedUp: (vmi: Vmi) => void;
}

/** The VMI to clean up: the pass's own, or an older one that had the same name. */
function subject(vmi: Vmi, uid: string): Vmi {
  if (uid === vmi.metadata.uid) return vmi;
  const { namespace, name } = vmi.metadata;
  return { metadata: { namespace, name, uid }, spec: { domain: { devices: {} } }, status: {} };
}

/**
 * Removes everything that this node holds for a VMI. Idempotent; every step is tried, and what failed is raised at the
 * end, before connection and record are given up, so that it is tried again.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1603-1640
 */
export async function finalCleanup(deps: FinalCleanupDeps, pass: Pass, uid: string): Promise<void> {
  const { parts, launchers, log } = { ...deps, log: pass.log };
  const vmi = subject(pass.vmi, uid);
  log.info(`Performing final local cleanup for vmi with uid ${uid}`);
  parts.migrationProxies?.stopTarget(uid);
  parts.migrationProxies?.stopSource(uid);
  parts.downwardMetrics?.stop(vmi);
  parts.routers?.stop(uid);
  const failures: unknown[] = [];
  const attempt = async (work: () => Promise<void> | undefined): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failures.push(error);
    }
  };
  await attempt(() => parts.containerDisks.unmount(vmi));
  await attempt(() => parts.hotplug?.unmountAll(vmi));
  if (uid !== '') await tearDownNetwork(deps, pass, vmi);
  if (failures.length > 0) throw joined(failures);
  await launchers.forget(ownerOf(vmi));
  log.info('Removing domain from cache during final cleanup');
  pass.dropsDomain = uid === pass.vmi.metadata.uid ? 'own' : 'stranger';
  deps.onCleanedUp(vmi);
}

async function tearDownNetwork({ parts }: FinalCleanupDeps, pass: Pass, vmi: Vmi): Promise<void> {
  try {
    await parts.network.tearDown(vmi);
  } catch (error) {
    pass.log.error({ reason: error }, `failed to delete VMI Network cache files: ${errorText(error)}`);
  }
}

function joined(failures: readonly unknown[]): unknown {
  return failures.length === 1 ? failures[0] : new HandlerError('Internal', failures.map(errorText).join('; '));
}
