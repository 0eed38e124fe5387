import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import { startController } from '../controller/controller.ts';
import type { Controller } from '../controller/controller.ts';
import type { VmiStore } from '../controller/store.ts';
import { admitVmi } from '../controller/vmi-changes.ts';
import { openJournal } from '../journal/journal.ts';
import type { Journal } from '../journal/journal.ts';
import { NODE_OWNER } from '../journal/resource.ts';
import { removeDirectory } from '../journal/remove-directory.ts';
import { releaseOwner } from '../journal/undo.ts';
import { probeKvm } from '../machine/kvm.ts';
import { logToFile } from '../machine/log-file.ts';
import { runTool } from '../machine/run-tool.ts';
import type { ManifestVmi } from '../manifest/parse.ts';
import { findInstallation } from '../sandbox/installation.ts';
import { launcherProgram } from '../sandbox/launcher-bundle.ts';
import type { NodeLayout } from '../state/layout.ts';
import { takeNodeLock } from '../state/node-lock.ts';
import { openSandboxRecords } from '../state/sandbox-records.ts';
import type { SandboxRecords } from '../state/sandbox-records.ts';
import { VmiFiles } from '../state/vmi-files.ts';
import { superviseHandler } from './handler-process.ts';
import type { HandlerProcess } from './handler-process.ts';
import { boundLogs } from './logs.ts';
import { removeRemains } from './remains.ts';
import { KEEP_ANNOTATION, MANIFEST_ANNOTATION, requireRoot, vmSandboxes } from './sandbox-port.ts';

/** How a node is opened. */
export interface NodeOptions {
  readonly layout: NodeLayout;
  /** The command as typed: other commands name it when the state directory is taken. */
  readonly command: string;
  readonly onHandlerRestart?: (reason: string) => void;
}

/**
 * A node without Kubernetes: the handler as a process, the controller, and what they share. Disposing of it stops both;
 * VMs that are kept go on, and when none is left everything the node has made is removed.
 */
export interface StandaloneNode extends AsyncDisposable {
  readonly store: VmiStore;
  readonly records: SandboxRecords;
  readonly controller: Controller;
  readonly handler: HandlerProcess;
  readonly layout: NodeLayout;
  /** Admits a manifest's VMI as a cluster would, and stores it: from then on it is started. */
  admit(manifest: ManifestVmi, options: { readonly keep: boolean }): Promise<Vmi>;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', s390x: 's390x' };

/** Name of this node: the machine's. */
function nodeNameOf(): string {
  return hostname().toLowerCase() || 'node';
}

/** The VMI that is stored for a manifest. */
function admitManifest({ file, vmi }: ManifestVmi, keep: boolean, now: Date): Vmi {
  const copy = structuredClone(vmi);
  const ours = { [MANIFEST_ANNOTATION]: file, ...(keep ? { [KEEP_ANNOTATION]: 'true' } : {}) };
  copy.metadata.annotations = { ...copy.metadata.annotations, ...ours };
  return admitVmi(copy, now, ARCHITECTURES[process.arch] ?? process.arch);
}

/** Removes what all VMs share once no VM is left. */
async function removeShared(journal: Journal, layout: NodeLayout): Promise<void> {
  if (journal.entries().some((entry) => entry.owner !== NODE_OWNER)) return;
  await releaseOwner(journal, runTool, NODE_OWNER);
  removeDirectory(layout.runDir); // the handler made directories in it too
}

/**
 * Opens the node of a state directory: removes what a killed process has left there, takes up the VMs that were kept,
 * starts handler and controller.
 *
 * @throws {VirtwireError} `NotRoot`, `AlreadyRunning`, `MissingTool`, `Timeout`.
 */
export async function openNode(options: NodeOptions): Promise<StandaloneNode> {
  requireRoot();
  const { layout } = options;
  await using cleanup = new AsyncDisposableStack();
  cleanup.use(takeNodeLock(layout.lockFile, options.command));
  const log = logToFile(join(layout.logsDir, 'node.log'));
  const journal = openJournal(layout.journalFile);
  const store = new VmiFiles(layout.vmisDir);
  const records = openSandboxRecords(layout.recordsDir);
  await removeRemains({ store, records, journal, run: runTool });
  cleanup.defer(() => removeShared(journal, layout));
  const installation = findInstallation();
  const { works } = await probeKvm(runTool);
  const program = await launcherProgram(runTool, installation);
  const nodeName = nodeNameOf();
  cleanup.use(boundLogs(layout));
  const onRestart = options.onHandlerRestart;
  const supervised = { layout, installation, journal, nodeName, log, useEmulation: !works };
  const handler = cleanup.use(superviseHandler(onRestart === undefined ? supervised : { ...supervised, onRestart }));
  const sandboxes = vmSandboxes({ run: runTool, journal, layout, installation, program, kvmWorks: works });
  const deps = { store, sandboxes, records, layout, newUid: randomUUID, now: Date.now, log };
  const controller = cleanup.use(startController(deps, nodeName));
  const owned = cleanup.move();
  return {
    store,
    records,
    controller,
    handler,
    layout,
    admit: (manifest, { keep }) => store.create(admitManifest(manifest, keep, new Date())),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
