import { readFileSync } from 'node:fs';

/** pid in a pid file of libvirt; undefined when there is none yet. */
export function readPidFile(path: string): number | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return /^\d+$/.test(text) ? Number(text) : undefined;
  } catch {
    return undefined;
  }
}

/** State letter of a process (`R`, `S`, `Z`, ...); undefined when there is no such process. */
export function readProcessState(pid: number): string | undefined {
  try {
    return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}
