/**
 * Many launchers without hypervisors in one process. Each has its socket and reaches the handler through its own pipe,
 * in the mount namespace of a holder process of its own. The first argument is a JSON list of {socket, pipe}.
 */
import { readFileSync } from 'node:fs';
import { cmdV1, createNotifySender } from '@virtwire/shared-proto';
import { emptyDomain, parseVmiJson, renderDomainJson } from '@virtwire/vm-model';
import { startFakeLauncher } from '../src/testing/index.ts';

interface Place {
  readonly socket: string;
  readonly pipe: string;
}

function runningDomain(request: Uint8Array): string {
  const json = cmdV1.VMIRequest.decode(request).vmi?.vmiJson ?? new Uint8Array();
  const { namespace, name, uid } = parseVmiJson(Buffer.from(json).toString('utf8')).metadata;
  const domain = emptyDomain();
  domain.ObjectMeta = { namespace, name, uid };
  domain.Spec.Metadata.KubeVirt = { UID: uid, GracePeriod: { DeletionGracePeriodSeconds: 30 } };
  domain.Spec.Devices.Interfaces = [{ Alias: { Name: 'default' }, MAC: { MAC: '02:00:00:00:00:01' } }];
  domain.Status.Status = 'Running';
  domain.Status.Reason = 'Unknown';
  return renderDomainJson(domain);
}

async function serve({ socket, pipe }: Place): Promise<void> {
  const sender = createNotifySender(pipe);
  const launcher = await startFakeLauncher(socket, ({ rpc, request }) => {
    if (rpc !== 'SyncVirtualMachine' || launcher.domain !== '') return;
    launcher.domain = runningDomain(request);
    void sender.sendDomainEvent({ domainJSON: Buffer.from(launcher.domain), eventType: 'MODIFIED' });
  });
}

const places = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as readonly Place[];
for (const place of places) await serve(place);
process.stdout.write('{"ready":true}\n');
