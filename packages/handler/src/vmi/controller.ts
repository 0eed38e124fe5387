import { LANDMARK, objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { errorText, hasErrorCode } from '../errors.ts';
import { isFinal, phaseOf, vmiRef } from '../model.ts';
import type { Domain, Vmi } from '../model.ts';
import { computeStatus } from '../status/compute.ts';
import type { StatusResult } from '../status/compute.ts';
import { findCondition } from '../status/conditions.ts';
import { isSemanticallyEqual } from '../status/equal.ts';
import { gatherFacts } from '../status/gather.ts';
import type { GatherDeps } from '../status/gather.ts';
import type { VmiSource } from '../vmi-source/source.ts';
import { decideVmi, vmiReference } from './decide.ts';
import { executeSteps } from './execute.ts';
import type { Executors } from './execute.ts';
import type { ExecutorsDeps } from './executors.ts';
import { createExecutors } from './executors.ts';
import { observe } from './observe.ts';
import type { ObserveDeps } from './observe.ts';
import type { Observed } from './observed.ts';
import type { Pass } from './pass.ts';
import { isDecentralizedTarget } from './phase.ts';
import type { Note, Plan } from './steps.ts';

/** What the VM controller works with. */
export interface VmControllerDeps extends Omit<ObserveDeps, 'source'>, ExecutorsDeps, GatherDeps {
  readonly source: Pick<VmiSource, 'get' | 'getAnywhere' | 'update'>;
}

/** Brings the VMs of this node in line with their VMIs, one key at a time. */
export interface VmController {
  /** One pass over a key. Rejects when it has to be tried again with back-off. */
  reconcile(key: string, signal: AbortSignal): Promise<void>;
}

function write(log: Logger, note: Note): void {
  log[note.level](note.message);
}

/** The VMI of a pass, or a reference to one that is gone. */
function subjectOf(o: Observed): Vmi {
  if (o.vmi !== undefined) return o.vmi;
  const cached = o.domain.state === 'present' ? (o.domain.domain.Spec.Metadata.KubeVirt.UID ?? '') : o.domain.uid;
  return vmiReference(o.key, cached === '' ? o.recordedUid : cached);
}

class Controller implements VmController {
  readonly #deps: VmControllerDeps;
  readonly #executors: Executors;

  constructor(deps: VmControllerDeps) {
    this.#deps = deps;
    this.#executors = createExecutors(deps);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<void> {
    const observed = await observe(this.#deps, key);
    const vmi = subjectOf(observed);
    const log = this.#deps.log.child({ controller: 'vm', ...objectFields(vmi) });
    const plan = decideVmi(observed);
    for (const note of plan.notes) write(log, note);
    const pass: Pass = {
      key,
      vmi,
      exists: observed.vmi !== undefined,
      domain: observed.domain.state === 'present' ? observed.domain.domain : undefined,
      log,
      collected: [],
      client: undefined,
      isolation: undefined,
      dropsDomain: 'no',
    };
    const error = await executeSteps(plan.steps, this.#executors, pass, signal);
    // A call that the launcher does not know is no failure of the VM (FM-1.5).
    const syncError = hasErrorCode(error, 'Unimplemented') ? undefined : error;
    await this.#finish(plan, pass, observed, syncError);
    if (syncError !== undefined) throw syncError as Error;
  }

  async #finish(plan: Plan, pass: Pass, observed: Observed, syncError: unknown): Promise<void> {
    if (syncError !== undefined && plan.isSync === true && !isFinal(pass.vmi)) {
      this.#deps.events.event(vmiRef(pass.vmi), 'Warning', 'SyncFailed', errorText(syncError));
      pass.log.error({ reason: errorText(syncError) }, 'Synchronizing the VirtualMachineInstance failed.');
    }
    if (plan.steps.at(-1)?.kind === 'writeStatus') {
      try {
        await this.#writeStatus(pass, syncError);
      } catch (error) {
        pass.log.error({ reason: errorText(error) }, 'Updating the VirtualMachineInstance status failed.');
        throw error;
      }
    }
    if (pass.dropsDomain !== 'no') this.#deps.domains.drop(pass.key);
    if (!pass.exists || pass.dropsDomain === 'stranger') this.#deps.domains.forget(pass.key);
    if (syncError === undefined && plan.isSync === true && observed.domain.state !== 'unknown') {
      pass.log.debug('Synchronization loop succeeded.');
    }
  }

  /** The newest domain of the VMI: what came while the pass ran spares a pass of its own. */
  #freshDomain(pass: Pass): Domain | undefined {
    const fact = this.#deps.domains.fact(pass.key);
    if (fact.state !== 'present' || fact.domain.Status.Status === 'Unknown') return pass.domain;
    const uid = fact.domain.Spec.Metadata.KubeVirt.UID ?? '';
    return uid === pass.vmi.metadata.uid ? fact.domain : pass.domain;
  }

  async #writeStatus(pass: Pass, syncError: unknown): Promise<void> {
    const { vmi, log } = pass;
    if (isFinal(vmi)) return;
    const { launchers, events, requeue, podInterfaces, nodeName, now, cluster } = this.#deps;
    const domain = this.#freshDomain(pass);
    const facts = await gatherFacts(this.#deps, { vmi, domain, isolation: pass.isolation, log });
    if (phaseOf(vmi) === 'Scheduled' && domain === undefined) launchers.track(vmi);
    const launcher = launchers.state(vmi);
    const { config } = cluster();
    const result = computeStatus({ vmi, domain, launcher, nowMs: now(), nodeName, syncError, facts, config });
    if (domain !== undefined) podInterfaces.dropAbsent(vmi);
    if (result.requeueAfterMs !== undefined) requeue.after(pass.key, result.requeueAfterMs, false);
    if (result.fatal !== undefined) log.error({ reason: errorText(syncError) }, result.fatal);
    for (const { type, reason, message } of result.events) events.event(vmiRef(vmi), type, reason, message);
    if (!isSemanticallyEqual(result.status, vmi.status)) await this.#update(pass, result);
    for (const { type, reason, message } of result.phaseEvents) events.event(vmiRef(vmi), type, reason, message);
    if (result.status.phase === 'Running' && phaseOf(vmi) !== 'Running' && !isDecentralizedTarget(vmi)) {
      await this.#deps.parts.hooks?.run('PostVMStart', vmi);
    }
  }

  async #update({ key, vmi, log }: Pass, { status }: StatusResult): Promise<void> {
    const { expectations, source } = this.#deps;
    expectations.expect(key);
    try {
      await source.update({ ...vmi, status });
    } catch (error) {
      expectations.drop(key);
      throw error;
    }
    if (status.phase !== undefined && status.phase !== phaseOf(vmi))
      log.info(`${LANDMARK.phaseChanged}${status.phase}`);
    const had = findCondition(vmi.status?.conditions ?? [], 'AgentConnected');
    if (had === undefined && findCondition(status.conditions ?? [], 'AgentConnected') !== undefined) {
      log.info(LANDMARK.agentConnected);
    }
  }
}

/** Builds the VM controller. */
export function createVmController(deps: VmControllerDeps): VmController {
  return new Controller(deps);
}
