import { chmodSync, constants, existsSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { runTool } from '@virtwire/host';
import { createLineSplitter, renderForwarded } from './log-lines.ts';

const MODE = 0o666;

/**
 * Makes the pipe that a VM's firmware writes to, and forwards its lines as QEMU's. Without a reader QEMU would hang.
 *
 * @param writeLine writes one line of JSON where the launcher logs.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go SeaBIOS debug pipe
 */
export async function forwardFirmwareLog(pipe: string, writeLine: (line: string) => void): Promise<Disposable> {
  if (!existsSync(pipe)) await runTool('mkfifo', [pipe]);
  chmodSync(pipe, MODE);
  // Opened for writing too, so that the reader is not told of an end whenever a writer leaves.
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const reader = new Socket({ fd, readable: true, writable: false });
  const lines = createLineSplitter();
  const write = (line: string): void => {
    const timestamp = new Date().toISOString().replace('Z', '000Z');
    writeLine(renderForwarded({ level: 'info', msg: `[SeaBios]:${line}`, timestamp, subcomponent: 'qemu' }));
  };
  reader.on('data', (chunk: Buffer) => lines.push(chunk).forEach(write));
  reader.on('error', () => reader.destroy());
  reader.unref();
  return { [Symbol.dispose]: () => void reader.destroy() };
}
