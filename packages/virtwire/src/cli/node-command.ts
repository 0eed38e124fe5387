import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { VirtwireError } from '../errors.ts';
import { Keeper } from '../node/keeper.ts';
import { openNode } from '../node/standalone-node.ts';
import type { NodeLayout } from '../state/layout.ts';
import { EXIT } from './exit-codes.ts';
import { Interrupts } from './interrupts.ts';
import type { Output } from './output.ts';
import { createProgress } from './progress.ts';
import type { Progress } from './progress.ts';

/** What `virtwire node` is called with. */
export interface NodeRequest {
  readonly manifests: string;
  readonly layout: NodeLayout;
  readonly output: Output;
  /** Emits SIGINT and SIGTERM. */
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Keeps a directory of VMs running until SIGINT or SIGTERM; the VMs go on then, and the next start takes them up again.
 */
export async function runNode({ manifests, layout, output, signals }: NodeRequest): Promise<number> {
  const progress = createProgress(output, Date.now, Date.now());
  const manifestsDir = resolve(manifests);
  requireDirectory(manifestsDir);
  const onHandlerRestart = (reason: string): void => progress.step(`handler ended (${reason}), starting it again`);
  using interrupts = new Interrupts(signals);
  await using node = await openNode({ layout, command: `virtwire node --manifests ${manifests}`, onHandlerRestart });
  const kept = node.records.list().length;
  progress.step(`node started on ${layout.stateDir}${kept === 0 ? '' : `, ${kept} VMs taken up again`}`);
  node.controller.events.on('step', ({ key, what }) => progress.step(`${key}: ${what}`));
  const seen = new Map<string, Progress>();
  using _changes = node.store.watch((key) => {
    const lines =
      seen.get(key) ??
      createProgress({ ...output, line: (text) => output.line(withKey(text, key)) }, Date.now, Date.now());
    seen.set(key, lines);
    const vmi = node.store.get(key);
    if (vmi === undefined) seen.delete(key);
    else lines.see(vmi);
  });
  using keeper = new Keeper({
    node,
    manifestsDir,
    settledFile: join(layout.stateDir, 'settled.json'),
    now: Date.now,
    tell: (key, text) => progress.step(key === undefined ? text : `${key}: ${text}`),
  });
  keeper.start();
  await new Promise<void>((resolve) => interrupts.listen(() => resolve()));
  progress.step(`stopping; ${node.records.list().length} VMs go on (virtwire stop NAME ends one)`);
  return EXIT.ok;
}

/** Looked at before a node is started for nothing. */
function requireDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return;
  throw new VirtwireError(
    'Usage',
    `--manifests ${path}: ${found === undefined ? 'no such directory' : 'no directory'}`,
  );
}

/** A progress line with the VM that it is about. */
function withKey(text: string, key: string): string {
  return text.replace(/ {2}/, `  ${key}: `);
}
