import { parseArgs } from 'node:util';
import { CompatError } from '../errors.ts';
import { readRecordings } from '../replay/recordings.ts';
import { replay } from '../replay/replay.ts';
import type { CompatProcess } from './process.ts';

/** Replays folders of recorded traffic. @returns 1 when our side takes something differently. */
export async function replayCommand(argv: readonly string[], io: CompatProcess): Promise<number> {
  const { positionals } = parseArgs({ args: [...argv], allowPositionals: true, strict: true });
  if (positionals.length === 0) throw new CompatError('BadOption', 'name a folder');
  let isGood = true;
  for (const path of positionals) {
    const { messages, samples, connections, answers, open, selections, problems } = await replay(readRecordings(path));
    for (const { path: file, problem } of problems) io.line(`✗ ${file}: ${problem}`);
    for (const [reason, count] of Object.entries(open)) io.line(`○ ${count} answers not compared: ${reason}`);
    for (const folder of selections) {
      io.line(`○ ${folder}: some calls without an index.json, which would say whether others are missing`);
    }
    const counts = `${messages} messages, ${connections} connections, ${samples} samples, ${answers} answers compared`;
    io.line(`${path}: ${counts}, ${problems.length} problems`);
    isGood &&= problems.length === 0;
  }
  return isGood ? 0 : 1;
}
