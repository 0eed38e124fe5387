// PID 1 of a new pid namespace: makes orphans and children of its own, and says what became of them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { runTool, startReaper } from '../src/index.ts';

const own = new Set<number>();
const reaped: { pid: number; exitCode: number | undefined; signal: string | undefined }[] = [];
using _reaper = startReaper({
  isOwnChild: (pid) => own.has(pid),
  isOrphan: (comm) => comm === 'timeout',
  onReaped: ({ pid, exitCode, signal }) => reaped.push({ pid, exitCode, signal }),
});

/**
 * A shell that leaves a grandchild behind, which then belongs to PID 1. The script must outlive the shell, which would
 * collect it itself otherwise: hence the sleeps.
 */
async function orphan(script: string): Promise<number> {
  const { stdout } = await runTool('sh', ['-c', `(${script}) >/dev/null 2>&1 & echo $!`]);
  return Number(stdout);
}

// The first one ends first; it is collected last all the same, since nobody said what `sh` is.
const unknown = await orphan('sleep 0.5; exit 3');
const known = await orphan('exec timeout 0.7 sleep 5');
const orphans = [await orphan('sleep 0.5; exit 7'), await orphan('sleep 0.5; kill -9 $(sh -c "echo \\$PPID")')];
for (let i = 0; i < 20; i++) orphans.push(await orphan('sleep 0.5'));
const children: (number | null)[] = [];
for (let i = 0; i < 20; i++) {
  const child = spawn('sh', ['-c', `sleep 0.0${i % 10}; exit ${i}`]);
  if (i % 2 === 0 && child.pid !== undefined) own.add(child.pid); // the others are not told to the reaper
  void once(child, 'exit').then(([code]) => children.push(code as number | null));
}
const deadline = Date.now() + 30_000;
while (Date.now() < deadline && (children.length < 20 || reaped.length < orphans.length + 2)) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const codes = orphans.slice(0, 2).map((pid) => reaped.find((r) => r.pid === pid));
const result = {
  pid: process.pid,
  children: children.toSorted((a, b) => Number(a) - Number(b)),
  missing: orphans.filter((pid) => !reaped.some((r) => r.pid === pid)).length,
  isKnownOneFirst: reaped.findIndex((r) => r.pid === known) < reaped.findIndex((r) => r.pid === unknown),
  codes: codes.map((r) => [r?.exitCode ?? null, r?.signal ?? null]),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
