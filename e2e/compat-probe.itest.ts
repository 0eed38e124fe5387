import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import type { Finding } from '@virtwire/compat';
import { expect, test } from 'vitest';
import { startLauncherPod } from './launcher-pod.ts';

const run = promisify(execFile);
const MAIN = join(import.meta.dirname, '../packages/compat/src/main.ts');
const VM = { name: 'virtwire-probe', namespace: 'default', uid: '5d6f0d0e-7f5b-4f0e-9d3c-0a1b2c3d4e5f' };

const canRun = process.getuid?.() === 0 && existsSync('/usr/bin/qemu-system-x86_64');

interface Report {
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
}

async function probe(socket: string, ...more: readonly string[]): Promise<Report> {
  const args = ['-C', '@virtwire/source', MAIN, 'probe', '--socket', socket, '--json', ...more];
  try {
    return JSON.parse((await run(process.execPath, args)).stdout) as Report;
  } catch (caught) {
    // A finding is exit code 1; what was found is told by the caller.
    const { stdout = '', stderr = '' } = caught as { readonly stdout?: string; readonly stderr?: string };
    if (stdout === '') throw new Error(stderr, { cause: caught });
    return JSON.parse(stdout) as Report;
  }
}

const withVerdict = ({ findings }: Report, verdict: Finding['verdict']): readonly string[] =>
  findings.filter((finding) => finding.verdict === verdict).map(({ rpc, detail }) => `${rpc}: ${detail}`);

test.runIf(canRun)('a probe leads a VM of the real launcher through the whole contract', async () => {
  await using pod = await startLauncherPod(VM);
  const asked = await probe(pod.cmdSocket);
  expect(withVerdict(asked, 'deviates')).toEqual([]);
  expect(withVerdict(asked, 'not asked').length).toBeGreaterThan(20);

  const led = await probe(pod.cmdSocket, '--unsafe', '--release', 'v1.9');
  expect(withVerdict(led, 'deviates')).toEqual([]);
  const supported = new Set(led.findings.filter(({ verdict }) => verdict === 'supported').map(({ rpc }) => rpc));
  expect(CMD_RPC_NAMES.filter((rpc) => !supported.has(rpc))).toEqual([]);
  expect(led.lines).toEqual(['v1.9']);
});
