// Asks a virt-launcher, ours or KubeVirt's of any release since v1.0, about its VM.
//
//   node call-launcher.ts [SOCKET]
//
// SOCKET is the launcher's cmd socket (default: where it is inside a launcher's pod). Exit code 1: it cannot be reached.
import { connectCmd, ProtoError } from '@virtwire/shared-proto';

const [socketPath = '/var/run/kubevirt/sockets/launcher-sock'] = process.argv.slice(2);

async function main(): Promise<void> {
  using launcher = await connectCmd(socketPath);
  const [qemu, domain] = await Promise.all([launcher.getQemuVersion(), launcher.getDomain()]);
  // A launcher that is older than an RPC says so; everything else works all the same.
  process.stdout.write(`qemu ${qemu.ok ? qemu.value.version : qemu.error.code}\n`);
  if (!domain.ok) throw domain.error;
  process.stdout.write(`domain ${domain.value.domain === '' ? 'none' : domain.value.domain}\n`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof ProtoError)) throw error;
  process.stderr.write(`${error.code}: ${error.message}\n`);
  process.exitCode = 1;
}
