import type { CmdClient, CmdConnectOptions } from '@virtwire/shared-proto';
import { connectCmd } from '@virtwire/shared-proto';
import { HandlerError } from '../errors.ts';
import type { Vmi } from '../model.ts';

/** Connects to a launcher: dial and version check. `onResult` is told how each call ended. */
export type ConnectLauncher = (
  socketFile: string,
  signal?: AbortSignal,
  onResult?: CmdConnectOptions['onResult'],
) => Promise<CmdClient>;

/** How long a VMI whose pod is there may wait for its launcher's socket. */
export const LAUNCHER_START_LIMIT_MS = 180_000;

/** @throws {HandlerError} `LauncherUnreachable` or `VersionMismatch`; the text is the peer's. */
export const connectLauncher: ConnectLauncher = async (socketFile, signal, onResult) => {
  try {
    return await connectCmd(socketFile, { signal, onResult });
  } catch (error) {
    const code = error instanceof Error && 'code' in error && error.code === 'NoCommonVersion';
    const text = error instanceof Error ? error.message : String(error);
    throw new HandlerError(code ? 'VersionMismatch' : 'LauncherUnreachable', text, { cause: error });
  }
};

/** A VMI's launcher as the handler holds it. */
export interface LauncherInfo {
  readonly isReady: boolean;
  readonly notInitializedSinceMs: number;
  readonly client: CmdClient | undefined;
  readonly socketFile: string | undefined;
}

/** The VMI that a launcher belongs to, as far as closing needs it. */
export interface LauncherOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Owner of a VMI's launcher. */
export function ownerOf(vmi: Vmi): LauncherOwner {
  const { namespace, name, uid } = vmi.metadata;
  return { namespace, name, uid };
}
