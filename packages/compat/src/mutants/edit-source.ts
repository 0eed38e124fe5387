// Preloaded into a process that runs a mutant of the product: one source file is changed while it is loaded.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { MUTATION_VARIABLE, parseMutation } from './mutation.ts';

const { file, find, replace } = parseMutation(process.env[MUTATION_VARIABLE] ?? '');
let edits = 0;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith(`/${file}`)) return loaded;
    const source = typeof loaded.source === 'string' ? loaded.source : readFileSync(fileURLToPath(url), 'utf8');
    const parts = source.split(find);
    if (parts.length !== 2) throw new Error(`${file} holds the text of the mutant ${parts.length - 1} times: ${find}`);
    edits++;
    return { ...loaded, source: parts.join(replace) };
  },
});

process.on('exit', () => {
  if (edits > 0) return;
  process.stderr.write(`${file} was never loaded\n`);
  process.exitCode = 2;
});
