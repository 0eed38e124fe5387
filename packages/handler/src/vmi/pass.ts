import type { CmdClient } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { Domain, Vmi } from '../model.ts';
import type { Isolation } from '../prepare/parts.ts';

/** One pass over a VMI: what its steps share. */
export interface Pass {
  readonly key: string;
  /** The VMI as stored, or a reference to one that is gone. */
  readonly vmi: Vmi;
  readonly exists: boolean;
  /** The domain when the pass began; undefined when it is known to be absent. */
  readonly domain: Domain | undefined;
  readonly log: Logger;
  /** Errors that let the pass go on and make it fail at its end. */
  readonly collected: unknown[];
  client: CmdClient | undefined;
  isolation: Isolation | undefined;
  /**
   * The domain leaves the store when the pass has written what came of it. That of a stranger says nothing about the
   * VMI's own, whose launcher is asked then.
   */
  dropsDomain: 'no' | 'own' | 'stranger';
}
