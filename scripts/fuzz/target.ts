import type { Random } from './random.ts';

/** Something that has to survive any bytes. */
export interface Target extends AsyncDisposable {
  /** Feeds one input. Rejects for a crash, a wrong error or answer, or a call that does not end. */
  feed(random: Random): Promise<void> | void;
}
