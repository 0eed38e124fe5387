import { loadManifest, openNode, requestStop, waitForVmi } from '../../src/index.ts';
import type { SandboxRecord, StandaloneNode } from '../../src/index.ts';
import { Scratch } from './machine.ts';
import { writeGuest } from './vm.ts';
import type { GuestWish } from './vm.ts';

const GONE_MS = 120_000;

/** A node in this process, with a state directory of its own; its end removes its VMs. */
export class TestNode implements AsyncDisposable {
  readonly scratch: Scratch;
  readonly node: StandaloneNode;

  private constructor(scratch: Scratch, node: StandaloneNode) {
    this.scratch = scratch;
    this.node = node;
  }

  static async open(scratch = new Scratch()): Promise<TestNode> {
    return new TestNode(scratch, await openNode({ layout: scratch.layout, command: 'test' }));
  }

  /** Starts the test guest; returns its key. */
  async start(wish: GuestWish): Promise<string> {
    const file = writeGuest(this.scratch.dir, wish);
    await this.node.admit(loadManifest(file, this.scratch.layout), { keep: false });
    return `default/${wish.name}`;
  }

  /** The sandbox of a VM. */
  sandbox(key: string): SandboxRecord {
    const vmi = this.node.store.get(key);
    const record = vmi === undefined ? undefined : this.node.records.read(vmi.metadata.uid);
    if (record === undefined) throw new Error(`${key} has no sandbox`);
    return record;
  }

  launcherLog(key: string): string {
    return `${this.scratch.layout.logsDir}/${key.replace('/', '_')}.launcher.log`;
  }

  /** Asks for the end of a VM and waits until nothing is left of it. */
  async stop(key: string, force = false): Promise<void> {
    await requestStop(this.node, key, force);
    await this.gone(key);
  }

  async gone(key: string): Promise<void> {
    const wanted = (vmi: unknown): true | undefined => (vmi === undefined ? true : undefined);
    await waitForVmi(this.node.store, key, wanted, { what: `the end of ${key}`, timeoutMs: GONE_MS });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const vmi of this.node.store.list()) await this.stop(`${vmi.metadata.namespace}/${vmi.metadata.name}`, true);
    await this.node[Symbol.asyncDispose]();
    this.scratch[Symbol.dispose]();
  }
}
