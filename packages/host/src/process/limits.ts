import { libc, throwErrno } from '../libc.ts';

const RLIMIT_NOFILE = 7;
const RLIMIT_MEMLOCK = 8;
const UNLIMITED = 0xffff_ffff_ffff_ffffn;

const RESOURCES = { memlock: RLIMIT_MEMLOCK, nofile: RLIMIT_NOFILE } as const;

/** A resource limit pair; `unlimited` where there is none. */
export interface ResourceLimit {
  readonly soft: bigint | 'unlimited';
  readonly hard: bigint | 'unlimited';
}

/** Reads a limit of any process. */
export function getLimit(pid: number, resource: keyof typeof RESOURCES): ResourceLimit {
  const old = Buffer.alloc(16);
  if (libc().prlimit(pid, RESOURCES[resource], null, old) !== 0) throwErrno(`prlimit ${resource} of ${pid}`);
  return { soft: fromKernel(old.readBigUInt64LE(0)), hard: fromKernel(old.readBigUInt64LE(8)) };
}

/** Sets a limit of any process; raising the hard one needs CAP_SYS_RESOURCE. */
export function setLimit(pid: number, resource: keyof typeof RESOURCES, limit: ResourceLimit): void {
  const next = Buffer.alloc(16);
  next.writeBigUInt64LE(toKernel(limit.soft), 0);
  next.writeBigUInt64LE(toKernel(limit.hard), 8);
  if (libc().prlimit(pid, RESOURCES[resource], next, null) !== 0) throwErrno(`prlimit ${resource} of ${pid}`);
}

function fromKernel(value: bigint): bigint | 'unlimited' {
  return value === UNLIMITED ? 'unlimited' : value;
}

function toKernel(value: bigint | 'unlimited'): bigint {
  return value === 'unlimited' ? UNLIMITED : value;
}
