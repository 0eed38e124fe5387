import type { Readable } from 'node:stream';
import { LauncherError } from '../../errors.ts';

/** Takes exact numbers of bytes off a stream. */
export interface ByteReader {
  /** @throws {LauncherError} `BackupFailed` when the stream ends before. */
  take(bytes: number): Promise<Buffer>;
}

/** Creates a reader; nobody else may read the stream. */
export function createByteReader(stream: Readable): ByteReader {
  let failure: Error | undefined;
  let wake = (): void => undefined;
  stream.on('readable', () => wake());
  stream.on('error', (error) => {
    failure = error;
    wake();
  });
  const end = (): void => {
    failure ??= new Error('unexpected end of stream');
    wake();
  };
  stream.on('end', end);
  stream.on('close', end);
  return {
    async take(bytes) {
      if (bytes === 0) return Buffer.alloc(0);
      for (;;) {
        const chunk = stream.read(bytes) as Buffer | null;
        if (chunk?.length === bytes) return chunk;
        if (failure !== undefined || chunk !== null) {
          throw LauncherError.from(failure ?? new Error('unexpected end of stream'), 'BackupFailed', 'NBD server: ');
        }
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
