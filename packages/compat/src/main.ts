#!/usr/bin/env node
const OLDEST_NODE = 24;

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  process.stderr.write(
    `virtwire compat: Node.js ${process.versions.node} is too old: ${OLDEST_NODE} or newer is needed\n`,
  );
  process.exit(2);
}

const { compatProcess } = await import('./cli/process.ts');
const { runCompat } = await import('./cli/program.ts');
process.exitCode = await runCompat(process.argv.slice(2), compatProcess());
// Launchers of cells that ended early still wait for their handler.
process.exit();
