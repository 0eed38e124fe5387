import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import type { NetworkNamespace } from './namespace.ts';

/**
 * Writes kernel settings of a network namespace. `/proc/sys/net` shows the namespace of the thread that opens it.
 *
 * @param settings pairs of a path below `/proc/sys` and its value, written in order.
 */
export function writeSysctls(namespace: NetworkNamespace, settings: readonly (readonly [string, string])[]): void {
  namespace.run(() => {
    for (const [path, value] of settings) {
      try {
        fs.writeFileSync(`/proc/sys/${path}`, value);
      } catch (caught) {
        throw HostError.from(caught, 'Syscall', `set ${path} to ${value}`);
      }
    }
  });
}

/** Reads kernel settings of a network namespace; undefined for those that this kernel does not have. */
export function readSysctls(namespace: NetworkNamespace, paths: readonly string[]): (string | undefined)[] {
  return namespace.run(() =>
    paths.map((path) => {
      try {
        return fs.readFileSync(`/proc/sys/${path}`, 'utf8').trim();
      } catch {
        return undefined;
      }
    }),
  );
}
