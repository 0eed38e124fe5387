// Lists libvirt's domains, then prints what happens to them.
//
//   node list-domains.ts [SOCKET] [EVENTS]
//
// SOCKET is the daemon's socket (default /var/run/libvirt/libvirt-sock). It ends after EVENTS events (default: never).
import { connect } from '@virtwire/libvirt';

const [socketPath = '/var/run/libvirt/libvirt-sock', limit = 'Infinity'] = process.argv.slice(2);

await using connection = await connect({ socketPath });
const seen = Promise.withResolvers<undefined>();
let left = Number(limit);
// Subscribe first: what happens while the list is made is not missed.
await using _events = await connection.onDomainEvent('lifecycle', ({ domain, event, detail }) => {
  process.stdout.write(`event ${domain.name} ${event}/${detail}\n`);
  if (--left <= 0) seen.resolve(undefined);
});
for (const domain of await connection.listAllDomains()) {
  const { state, reason } = await domain.getState();
  process.stdout.write(`domain ${domain.name} ${domain.uuid} state ${state}/${reason}\n`);
}
process.stdout.write('listening\n');
await seen.promise;
