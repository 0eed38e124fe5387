import { join } from 'node:path/posix';

/** Port numbers that name the streams of a migration: the guest's memory, and its disks. */
const STREAM_PORT = { memory: 49152, disks: 49153 } as const;

/** Name of a stream of a migration, beside libvirt's own connection. */
export type MigrationStream = keyof typeof STREAM_PORT;

/** Directory of the sockets through which a migration goes. */
export function migrationDir(shareDir: string): string {
  return join(shareDir, 'migrationproxy');
}

/** Through this socket the source's libvirt reaches the target's. */
export function controlSocket(shareDir: string, uid: string): string {
  return join(migrationDir(shareDir), `${uid}-source.sock`);
}

/** Socket of a stream: a proxy's on the source, QEMU's own of the same name on the target. */
export function streamSocket(shareDir: string, uid: string, stream: MigrationStream): string {
  return join(migrationDir(shareDir), `${uid}-${STREAM_PORT[stream]}-source.sock`);
}

/** TCP port of a stream, where sources that know no sockets connect to. */
export function streamPort(stream: MigrationStream): number {
  return STREAM_PORT[stream];
}
