import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { GuestPanicInfo } from '@virtwire/vm-model';

const CHUNK_BYTES = 4_096;
/** How far back a log is searched: a guest can make QEMU log without end. */
const MAX_SEARCH_BYTES = 16 * 1024 * 1024;
const PANIC_LINE = /panic ([^:\s]+): ([^\n]*)$/;
/** 64 bits each. */
const HYPERV_ARG = /arg([1-5])='(0x[0-9a-fA-F]{1,16})'/g;

function parseLine(line: string): GuestPanicInfo | undefined {
  const match = PANIC_LINE.exec(line);
  if (match === null) return undefined;
  const type = match[1] ?? '';
  if (type !== 'hyper-v') return { Type: type };
  const info: Record<string, unknown> = { Type: type };
  for (const [, index, value] of (match[2] ?? '').matchAll(HYPERV_ARG)) info[`Arg${index}`] = BigInt(value ?? 0);
  return info;
}

/** The last panic line of a log's text; undefined when there is none. */
function parseLastPanic(text: string): GuestPanicInfo | undefined {
  const lines = text.split('\n');
  for (let i = lines.length - 1; i >= 0; i--) {
    const info = parseLine(lines[i] ?? '');
    if (info !== undefined) return info;
  }
  return undefined;
}

/**
 * Searches a QEMU log from its end for the last `panic TYPE: ARGS` line; undefined when there is none or no log.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go guest panic
 */
export function readLastPanic(logFile: string): GuestPanicInfo | undefined {
  let fd: number;
  try {
    fd = openSync(logFile, 'r');
  } catch {
    return undefined;
  }
  try {
    let end = fstatSync(fd).size;
    const stopAt = Math.max(0, end - MAX_SEARCH_BYTES);
    let rest = Buffer.alloc(0);
    while (end > stopAt) {
      const start = Math.max(stopAt, end - CHUNK_BYTES);
      const chunk = Buffer.alloc(end - start);
      readSync(fd, chunk, 0, chunk.length, start);
      const whole = Buffer.concat([chunk, rest]);
      const cut = start === 0 ? -1 : whole.indexOf(0x0a);
      const info = start > stopAt && cut < 0 ? undefined : parseLastPanic(whole.subarray(cut + 1).toString('utf8'));
      if (info !== undefined) return info;
      rest = cut < 0 ? whole.subarray(0, CHUNK_BYTES) : whole.subarray(0, cut);
      end = start;
    }
    return undefined;
  } finally {
    closeSync(fd);
  }
}

function hex(value: unknown): string {
  return `'0x${BigInt((value as bigint | number | undefined) ?? 0).toString(16)}'`;
}

/** What the Kubernetes event says about a panic. */
export function renderPanicMessage(info: GuestPanicInfo | undefined): string {
  if (info === undefined) return 'GuestPanicked (details unavailable)';
  if (info.Type !== 'hyper-v') return `GuestPanicked: type=${info.Type ?? ''}`;
  return `GuestPanicked: ${[info.Arg1, info.Arg2, info.Arg3, info.Arg4, info.Arg5].map(hex).join(', ')}`;
}
