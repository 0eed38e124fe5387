/** First word of the command line that makes this process the node's handler; `virtwire` starts it so. */
const NODE_HANDLER = 'node-handler';
/** First word of the commands that check other builds. */
const COMPAT = 'compat';

const argv = process.argv.slice(2);
// Each branch loads its own part only: the handler needs no command line, and the commands need no handler.
if (argv[0] === NODE_HANDLER) {
  const { runNodeHandler } = await import('./node-handler/run.ts');
  process.exitCode = await runNodeHandler(argv.slice(1));
} else if (argv[0] === COMPAT) {
  const { compatProcess, runCompat } = await import('@virtwire/compat');
  process.exitCode = await runCompat(argv.slice(1), compatProcess());
} else {
  const { standardOutput } = await import('./cli/output.ts');
  const { runCli } = await import('./cli/program.ts');
  process.exitCode = await runCli(argv, {
    output: standardOutput,
    input: process.stdin,
    standardInput: () => process.stdin,
    signals: process,
  });
}
process.exit();
