import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { joinContinued, renderForwarded } from './log-lines.ts';

/** Most that is forwarded at one time: a guest can make QEMU log without end. */
const MAX_READ_BYTES = 256 * 1024;

/** Follows QEMU's own log. */
export interface QemuLogForwarder {
  /** Forwards what was written since the last time. Does nothing while there is no log. */
  forward(): void;
}

/**
 * Creates a forwarder of one domain's log file.
 *
 * @param writeLine writes one line of JSON where the launcher logs.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go QEMU log reader
 */
export function createQemuLogForwarder(logFile: string, writeLine: (line: string) => void): QemuLogForwarder {
  let offset = 0;
  function readNews(): string {
    let fd: number;
    try {
      fd = openSync(logFile, 'r');
    } catch {
      return '';
    }
    try {
      const { size } = fstatSync(fd);
      if (size < offset) offset = 0;
      if (size - offset > MAX_READ_BYTES) offset = size - MAX_READ_BYTES;
      const news = Buffer.alloc(size - offset);
      readSync(fd, news, 0, news.length, offset);
      const end = news.lastIndexOf(0x0a) + 1;
      offset += end;
      return news.subarray(0, end).toString('utf8');
    } finally {
      closeSync(fd);
    }
  }
  return {
    forward() {
      const timestamp = new Date().toISOString().replace('Z', '000Z');
      const lines = joinContinued(readNews().split('\n'));
      for (const msg of lines) {
        if (msg !== '') writeLine(renderForwarded({ level: 'info', msg, timestamp, subcomponent: 'qemu' }));
      }
    },
  };
}
