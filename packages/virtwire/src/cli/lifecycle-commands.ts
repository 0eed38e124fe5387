import { connectCmd, unwrap } from '@virtwire/shared-proto';
import { withDocuments } from '@virtwire/shared-proto/documents';
import { isConditionTrue } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { VirtwireError } from '../errors.ts';
import { openNode } from '../node/standalone-node.ts';
import { launcherSocketOf } from '../sandbox/pod-files.ts';
import { lockHolder } from '../state/file-lock.ts';
import type { NodeLayout } from '../state/layout.ts';
import { attachConsole, connectSerial } from './console.ts';
import type { ConsoleInput } from './console.ts';
import { EXIT } from './exit-codes.ts';
import { Interrupts } from './interrupts.ts';
import type { Output } from './output.ts';
import { createProgress } from './progress.ts';
import { requestStop } from './run-command.ts';
import { findSandbox, findVmi, parseTarget } from './target.ts';
import { waitForVmi } from './watch-vmi.ts';

/** What commands that change a running VM are called with. */
export interface ChangeRequest {
  readonly target: string;
  readonly layout: NodeLayout;
  readonly output: Output;
}

const CONDITION_WAIT_MS = 15_000;
const STOP_SLACK_MS = 90_000;

async function callLauncher(
  { target, layout }: ChangeRequest,
  rpc: 'PauseVirtualMachine' | 'UnpauseVirtualMachine',
): Promise<void> {
  const key = parseTarget(target);
  const record = findSandbox(layout, key);
  const { vmi } = findVmi(layout, key);
  try {
    using client = await connectCmd(launcherSocketOf(layout.podsMount, record.podUid));
    const launcher = withDocuments(client);
    unwrap(
      await (rpc === 'PauseVirtualMachine' ? launcher.pauseVirtualMachine : launcher.unpauseVirtualMachine)({ vmi }),
    );
  } catch (caught) {
    const verb = rpc === 'PauseVirtualMachine' ? 'pause' : 'unpause';
    throw VirtwireError.from(caught, 'NoLauncher', `cannot ${verb} ${key}`);
  }
}

async function waitForPaused({ target, layout }: ChangeRequest, paused: boolean): Promise<void> {
  const key = parseTarget(target);
  const { files } = findVmi(layout, key);
  const isSo = (vmi: Vmi | undefined): true | undefined => {
    if (vmi === undefined) throw new VirtwireError('NotFound', `VM ${key} ended meanwhile`);
    return isConditionTrue(vmi.status?.conditions, 'Paused') === paused ? true : undefined;
  };
  const what = `${key} ${paused ? 'paused' : 'running again'} in its status`;
  await waitForVmi(files.store, key, isSo, { what, timeoutMs: CONDITION_WAIT_MS });
}

/** Stops the guest's processors; its memory stays. */
export async function pauseVm(request: ChangeRequest): Promise<number> {
  await callLauncher(request, 'PauseVirtualMachine');
  await waitForPaused(request, true);
  request.output.line(`${parseTarget(request.target)} paused`);
  return EXIT.ok;
}

/** Lets a paused guest go on. */
export async function unpauseVm(request: ChangeRequest): Promise<number> {
  await callLauncher(request, 'UnpauseVirtualMachine');
  await waitForPaused(request, false);
  request.output.line(`${parseTarget(request.target)} goes on`);
  return EXIT.ok;
}

/** Joins the terminal to the guest's serial console. */
export async function openConsole(request: ChangeRequest & { readonly input: ConsoleInput }): Promise<number> {
  const key = parseTarget(request.target);
  const socket = await connectSerial(findSandbox(request.layout, key));
  if (request.input.isTTY === true) request.output.error(`console of ${key}: Ctrl-] leaves it`);
  const end = await attachConsole(socket, request.input, request.output);
  if (end === 'closed' && request.input.isTTY === true) request.output.error('the console was closed: the guest ended');
  return EXIT.ok;
}

/** What `virtwire stop` is called with. */
interface StopRequest extends ChangeRequest {
  readonly force: boolean;
  /** Emits SIGINT and SIGTERM. */
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Ends a VM: by asking the guest, or by force. When no `virtwire node` or `run` manages the state directory, this
 * process does its work until the VM is gone.
 */
export async function stopVm(request: StopRequest): Promise<number> {
  const key = parseTarget(request.target);
  const { layout, force, output } = request;
  const { vmi, files } = findVmi(layout, key);
  const progress = createProgress(output, Date.now, Date.now());
  const cancelled = new AbortController();
  using interrupts = new Interrupts(request.signals);
  interrupts.listen(() => cancelled.abort(new VirtwireError('Cancelled', `stopping ${key}: interrupted`)));
  await using scope = new AsyncDisposableStack();
  if (lockHolder(layout.lockFile) === undefined) {
    scope.use(await openNode({ layout, command: `virtwire stop ${request.target}` }));
    if (files.store.get(key) === undefined) {
      progress.step(`${key} removed: the command that ran it was killed`);
      return EXIT.ok;
    }
  }
  progress.step(force ? `killing ${key}` : `asking ${key} to shut down`);
  await requestStop(files, key, force);
  const graceMs = Number(vmi.spec.terminationGracePeriodSeconds ?? 30) * 1_000;
  await waitForVmi(files.store, key, (now) => (now?.metadata.uid === vmi.metadata.uid ? undefined : true), {
    what: `the end of ${key}`,
    timeoutMs: graceMs + STOP_SLACK_MS,
    signal: cancelled.signal,
    onChange: (now) => progress.see(now),
  });
  progress.step(`${key} removed`);
  return EXIT.ok;
}
