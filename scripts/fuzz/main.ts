import { fork } from 'node:child_process';
import { parseArgs } from 'node:util';
import { fuzz, type FuzzFigures } from './run.ts';
import { TARGETS } from './targets.ts';

/** Heap of a target: inputs must not add up. */
const HEAP_MIB = 256;
/** A target that says nothing for so long hangs. */
const SILENCE_LIMIT_MS = 60_000;

type FromChild = { readonly fed: number } | { readonly figures: FuzzFigures } | { readonly failure: string };

/** Runs one target in a process of its own, so that a hang, a crash or a full heap is seen from outside. */
function runApart(target: string, inputs: number, seed: number): Promise<FuzzFigures> {
  const args = ['--target', target, '--inputs', String(inputs), '--seed', String(seed)];
  const child = fork(import.meta.filename, args, {
    execArgv: ['--conditions', '@virtwire/source', `--max-old-space-size=${HEAP_MIB}`],
  });
  return new Promise((resolve, reject) => {
    let fed = 0;
    const hung = (): void => {
      child.kill('SIGKILL');
      reject(new Error(`${target} hangs at an input from ${seed + fed} on`));
    };
    let timer = setTimeout(hung, SILENCE_LIMIT_MS);
    child.on('message', (message) => {
      clearTimeout(timer);
      timer = setTimeout(hung, SILENCE_LIMIT_MS);
      const said = message as FromChild;
      if ('fed' in said) ({ fed } = said);
      else {
        if ('figures' in said) resolve(said.figures);
        else reject(new Error(said.failure));
        // What it has said is all; a launcher's timers may outlive the launcher.
        child.kill('SIGKILL');
      }
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`${target} ended with ${signal ?? code ?? 0} at an input from ${seed + fed} on`));
    });
  });
}

async function runHere(target: string, inputs: number, seed: number): Promise<void> {
  const tell = (message: FromChild): boolean | undefined => process.send?.(message);
  try {
    tell({ figures: await fuzz({ target, inputs, seed, onProgress: (fed) => void tell({ fed }) }) });
  } catch (caught) {
    tell({ failure: caught instanceof Error ? caught.message : String(caught) });
  }
  process.disconnect?.();
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

async function runAll(inputs: number, seed: number, only: string | undefined): Promise<boolean> {
  print(`seed ${seed}; heap of each target ${HEAP_MIB} MiB`);
  let [total, failures] = [0, 0];
  for (const [name, { share }] of Object.entries(TARGETS)) {
    if (only !== undefined && only !== name) continue;
    try {
      const figures = await runApart(name, Math.ceil(inputs * (only === undefined ? share : 1)), seed);
      total += figures.inputs;
      const { seconds, slowestMs, peakRssMiB } = figures;
      const speed = Math.round(figures.inputs / seconds);
      print(
        `${name.padEnd(14)}${figures.inputs} inputs, ${speed}/s, slowest ${slowestMs.toFixed(0)} ms, peak ${peakRssMiB.toFixed(0)} MiB`,
      );
    } catch (caught) {
      failures += 1;
      print(`${name.padEnd(14)}FAILED: ${caught instanceof Error ? caught.message : String(caught)}`);
    }
  }
  print(`${total} inputs in all, ${failures} failed targets`);
  return failures === 0;
}

function wrongUse(inputs: number, seed: number, only: string | undefined): string | undefined {
  if (!Number.isSafeInteger(inputs) || inputs < 1) return '--inputs is a whole number, 1 or more';
  if (!Number.isSafeInteger(seed) || seed < 0) return '--seed is a whole number, 0 or more';
  const names = Object.keys(TARGETS);
  if (only === undefined || names.includes(only)) return undefined;
  return `there is no target ${only}: one of ${names.join(', ')}`;
}

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    only: { type: 'string' },
    target: { type: 'string' },
  },
});
const [inputs, seed] = [Number(values.inputs), Number(values.seed)];
const refusal = wrongUse(inputs, seed, values.only);
if (refusal !== undefined) {
  process.stderr.write(`fuzz: ${refusal}\n`);
  process.exitCode = 2;
} else if (values.target !== undefined) await runHere(values.target, inputs, seed);
else if (!(await runAll(inputs, seed, values.only))) process.exitCode = 1;
