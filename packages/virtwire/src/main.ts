import { standardOutput } from './cli/output.ts';
import { runCli } from './cli/program.ts';

process.exitCode = await runCli(process.argv.slice(2), {
  output: standardOutput,
  input: process.stdin,
  signals: process,
});
process.exit();
