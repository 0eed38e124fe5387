export { systemClock } from './clock.ts';
export type { Clock } from './clock.ts';
export { DEFAULT_RATE_LIMITS } from './rate-limit.ts';
export type { RateLimits } from './rate-limit.ts';
export { WorkQueue } from './work-queue.ts';
export type { Requeue, RunOptions, Work, WorkQueueOptions } from './work-queue.ts';
