// What a launcher of a KubeVirt release lacks, and how its handlers do without.
//
//   node release-schema.ts v1.3 [DESCRIPTOR_SET]
//
// With a second argument the release's protobuf descriptors are written there, for protoc, buf or grpcurl.
import { writeFileSync } from 'node:fs';

import { RPC_RULES } from '@virtwire/shared-proto/compat-rules';
import { openHistory } from '@virtwire/shared-proto/history';
import { migrationOptions } from '@virtwire/vm-model/payloads';

const [name = '', file] = process.argv.slice(2);
const history = openHistory();
const release = history.resolve(name);
if (release === undefined) {
  process.stderr.write(
    `${name} is no release between ${history.releases[0] ?? ''} and ${history.releases.at(-1) ?? ''}\n`,
  );
  process.exit(2);
}
process.stdout.write(`${release}\n`);
for (const { rpc, effect } of RPC_RULES) {
  if (!history.hasRpc(release, rpc)) process.stdout.write(`  no ${rpc}: ${effect}\n`);
}
if (file !== undefined) writeFileSync(file, history.descriptorSet(release));

// The JSON within the messages is typed, too.
const options = { ...migrationOptions.zero(), Bandwidth: '64Mi', AllowPostCopy: true };
process.stdout.write(`migration options: ${migrationOptions.render(options)}\n`);
