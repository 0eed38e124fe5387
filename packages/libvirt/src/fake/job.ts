import { DomainJobOperation, DomainJobType, ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import { typedParams } from '../typed-params.ts';
import type { TypedParam, TypedParamInput } from '../typed-params.ts';
import type { FakeDomain } from './domain.ts';
import { daemonError } from './errors.ts';

/** A long job of a domain: migration, backup. */
export class FakeJob {
  readonly operation: number;
  /** Resolves when the job has ended well. */
  readonly done: Promise<void>;
  /** `DomainJobType` as GET_JOB_STATS gives it. */
  type: number = DomainJobType.UNBOUNDED;
  #figures: TypedParamInput = { data_total: 0n, data_processed: 0n, data_remaining: 0n };
  readonly #domain: FakeDomain;
  readonly #startedAtMs = performance.now();
  #resolve!: () => void;
  #reject!: (error: Error) => void;

  constructor(domain: FakeDomain, operation: number) {
    this.#domain = domain;
    this.operation = operation;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Lever: figures that the job reports from now on. */
  report(figures: TypedParamInput): void {
    this.#figures = { ...this.#figures, ...figures };
  }

  /** Figures as typed parameters. */
  params(): TypedParam[] {
    const elapsed = BigInt(Math.round(performance.now() - this.#startedAtMs));
    return typedParams({ operation: this.operation, time_elapsed: elapsed, ...this.#figures });
  }

  /** Lever: the job ends well. */
  complete(): void {
    this.#end(DomainJobType.COMPLETED);
    this.#resolve();
  }

  /** Lever: the job fails. */
  fail(message: string): void {
    this.report({ errmsg: message });
    this.#end(DomainJobType.FAILED);
    this.#reject(daemonError(ErrorNumber.OPERATION_FAILED, ErrorDomain.QEMU, `operation failed: ${message}`));
  }

  /** ABORT_JOB. */
  abort(): void {
    this.#end(DomainJobType.CANCELLED);
    const name = this.operation === DomainJobOperation.BACKUP ? 'backup' : 'migration out';
    const text = `operation aborted: ${name} job: canceled by client`;
    this.#reject(daemonError(ErrorNumber.OPERATION_ABORTED, ErrorDomain.QEMU, text));
  }

  #end(type: number): void {
    if (this.#domain.job !== this) return;
    this.type = type;
    this.#domain.job = undefined;
    this.#domain.completedJob = this;
  }
}

/** Starts a job, which ends by itself as the guest's behaviour says. */
export function startJob(domain: FakeDomain, operation: number): FakeJob {
  domain.assertActive();
  if (domain.job !== undefined) {
    const text =
      'Timed out during operation: cannot acquire state change lock (held by monitor=remoteDispatchDomainMigratePerform3Params)';
    throw daemonError(ErrorNumber.OPERATION_TIMEOUT, ErrorDomain.QEMU, text);
  }
  const job = new FakeJob(domain, operation);
  domain.job = job;
  // Who started the job may not wait for it.
  job.done.catch(() => undefined);
  const duration = domain.behaviour.jobDurationMs ?? 0;
  if (duration !== 'untilLever') domain.host.schedule(duration, () => domain.job === job && job.complete());
  return job;
}
