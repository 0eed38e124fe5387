import { Writable } from 'node:stream';
import { createLogger } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';

/** A logger whose lines end up in `lines`, parsed. */
export function recordedLog(lines: Record<string, unknown>[] = []): Logger {
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString('utf8').split('\n')) {
        if (line !== '') lines.push(JSON.parse(line) as Record<string, unknown>);
      }
      done();
    },
  });
  return createLogger('virt-handler', { destination });
}
