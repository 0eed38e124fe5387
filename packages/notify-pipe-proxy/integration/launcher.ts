// In the pod: sends one event as a launcher does and prints whether it was taken.
import { createNotifySender } from '@virtwire/shared-proto';

await using sender = createNotifySender('/var/run/kubevirt/domain-notify-pipe.sock');
const result = await sender.sendDomainEvent({ domainJSON: Buffer.from('{}'), eventType: 'MODIFIED' });
process.stdout.write(`${result.ok}`);
