import type { Vmi } from '@virtwire/vm-model';
import type { HandlerDirs, ReportedEvent } from './subjects.ts';

/** Environment variable with the {@link HandlerSettings} of a handler under test, as JSON. */
export const HANDLER_VARIABLE = 'VIRTWIRE_COMPAT_HANDLER';

/** What a handler under test that is a command has to know. */
export interface HandlerSettings extends HandlerDirs {
  readonly nodeName: string;
  readonly resyncMs: number;
}

/** A line to a handler under test: the cluster's side, one JSON object per line. */
export type ToHandler =
  | { readonly put: Vmi }
  | { readonly remove: string }
  | { readonly answer: number; readonly vmi: Vmi }
  | { readonly answer: number; readonly code: string; readonly message: string };

/** A line from a handler under test. */
export type FromHandler =
  | { readonly ready: true; readonly missingParts?: readonly string[] }
  | { readonly update: number; readonly vmi: Vmi }
  | { readonly event: ReportedEvent };
