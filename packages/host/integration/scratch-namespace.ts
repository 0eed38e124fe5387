import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { NetworkNamespace, runTool } from '../src/index.ts';

/** An empty network namespace of a test's own, its loopback up. */
export interface ScratchNamespace {
  readonly namespace: NetworkNamespace;
  readonly remove: () => Promise<void>;
}

/** Makes a namespace that stays because it is mounted on a file in a temporary directory. */
export async function createScratchNamespace(): Promise<ScratchNamespace> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-host-net-'));
  const file = path.join(directory, 'net');
  fs.writeFileSync(file, '');
  await runTool('unshare', [`--net=${file}`, 'ip', 'link', 'set', 'lo', 'up']);
  const namespace = NetworkNamespace.open(file);
  const remove = async (): Promise<void> => {
    namespace[Symbol.dispose]();
    await runTool('umount', [file]);
    fs.rmSync(directory, { recursive: true });
  };
  return { namespace, remove };
}
