import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CompatError } from '../errors.ts';
import { startRecorder } from '../record/record.ts';
import type { CompatProcess } from './process.ts';
import { untilTold } from './until-told.ts';

const OPTIONS = {
  listen: { type: 'string' },
  to: { type: 'string' },
  out: { type: 'string' },
  release: { type: 'string' },
} as const;

/** Records until it is told to end. */
export async function recordCommand(argv: readonly string[], io: CompatProcess): Promise<number> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  const { listen, to, out, release = 'unknown' } = values;
  if (listen === undefined || to === undefined || out === undefined) {
    throw new CompatError('BadOption', '--listen, --to and --out are needed');
  }
  if (resolve(listen) === resolve(to)) {
    throw new CompatError('BadOption', `--listen and --to are both ${listen}: move the socket of the server first`);
  }
  const recorder = await startRecorder({ listen, to, out, release });
  io.error(`recording what passes from ${listen} to ${to}; Ctrl-C ends it`);
  await untilTold(io);
  await recorder[Symbol.asyncDispose]();
  io.line(`${recorder.messages} messages of ${recorder.connections} connections in ${out}`);
  return 0;
}
