import { parseArgs } from 'node:util';

import { renderRules, rulesAsJson } from '@virtwire/shared-proto/compat-rules';

import type { Output } from './output.ts';

/** Prints what is sent to peers of which age, and what happens without it. */
export async function rulesCommand(argv: readonly string[], io: Output): Promise<number> {
  const { values } = parseArgs({ args: [...argv], options: { json: { type: 'boolean', default: false } } });
  io.line((values.json ? rulesAsJson() : renderRules()).trimEnd());
  return 0;
}
