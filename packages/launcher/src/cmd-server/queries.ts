import type { CmdHandlers } from '@virtwire/shared-proto';
import { renderFilesystems, renderGuestInfo, renderUsers } from '../agent/guest-info-json.ts';
import type { AgentStore } from '../agent/store.ts';
import type { GetDomainDeps } from '../domain/get-domain.ts';
import { getFirstDomain } from '../domain/get-domain.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import type { DomainWriter } from '../domain/wire-domain.ts';
import { wireError } from './wire-error.ts';

/** What the methods need. */
export interface QueryRpcDeps {
  readonly libvirt: Pick<LibvirtPort, 'getVersion'>;
  readonly getDomain: GetDomainDeps;
  readonly agent: AgentStore;
  readonly writer: DomainWriter;
}

/** libvirt's number of a hypervisor version as text: `QEMU 7.2.22`. */
function renderQemuVersion(version: bigint): string {
  return `QEMU ${version / 1_000_000n}.${(version / 1_000n) % 1_000n}.${version % 1_000n}`;
}

async function answering<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (caught) {
    throw wireError(caught);
  }
}

/** Methods that only ask. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function queryHandlers({ libvirt, getDomain, agent, writer }: QueryRpcDeps) {
  return {
    ping: () => undefined,
    async getDomain() {
      const domain = await answering(getFirstDomain(getDomain));
      return { domain: domain === undefined ? '' : writer.render(domain) };
    },
    getGuestInfo: () => ({ guestInfoResponse: renderGuestInfo(agent.facts()) }),
    getUsers: () => ({ guestUserListResponse: renderUsers(agent.facts()) }),
    getFilesystems: () => ({ guestFilesystemsResponse: renderFilesystems(agent.facts()) }),
    getQemuVersion: async () => ({ version: renderQemuVersion(await answering(libvirt.getVersion())) }),
  } satisfies CmdHandlers;
}
