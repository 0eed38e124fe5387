import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';

/** A logger of the command line itself; it writes to a file, for the terminal shows people's own lines. */
export function logToFile(file: string): Logger {
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  return createLogger('virtwire', { destination: { write: (line: string) => appendFileSync(file, line) } });
}
