#!/usr/bin/env node
import { compatProcess } from './cli/process.ts';
import { runCompat } from './cli/program.ts';

process.exitCode = await runCompat(process.argv.slice(2), compatProcess());
// Launchers of cells that ended early still wait for their handler.
process.exit();
