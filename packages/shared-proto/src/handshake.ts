import type { UnixChannel } from './channel.ts';
import { dialUnix } from './channel.ts';
import { ProtoError } from './errors.ts';
import { renderStatus } from './grpc-status.ts';

/** The only generation of both protocols so far. */
export const PROTOCOL_VERSION = 1;

/** Options of connecting to a peer. */
export interface ConnectOptions {
  readonly signal?: AbortSignal | undefined;
  /** Limit for the socket and the peer's first bytes. Default 2 s, as KubeVirt's. */
  readonly dialTimeoutMs?: number | undefined;
  /** Limit for the version check. Default 5 s, as KubeVirt's. */
  readonly infoTimeoutMs?: number | undefined;
  /** Protocol generations that this side speaks; only tests of skew have a reason to change it. Default [1]. */
  readonly versions?: readonly number[] | undefined;
}

/** What differs between the info services of cmd and notify. */
export interface InfoService {
  /** As in the error texts: `cmd` or `notify`. */
  readonly protocol: string;
  readonly path: string;
  decodeVersions(bytes: Buffer): readonly number[];
}

const DIAL_TIMEOUT_MS = 2_000;
const INFO_TIMEOUT_MS = 5_000;

/** A channel whose peer speaks our protocol. */
export interface Connection {
  readonly channel: UnixChannel;
  readonly version: number;
}

/**
 * Connects to a peer and agrees on a protocol generation. On failure nothing stays open.
 *
 * @throws {ProtoError} `DialFailed`, `VersionCheckFailed`, `NoCommonVersion`, `VersionUnsupported` or `Aborted`.
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/client.go, pkg/util/net/grpc/grpc.go
 */
export async function connect(socketPath: string, info: InfoService, options: ConnectOptions): Promise<Connection> {
  const { signal } = options;
  const channel = await dialUnix(socketPath, { timeoutMs: options.dialTimeoutMs ?? DIAL_TIMEOUT_MS, signal });
  try {
    const offered = await askVersions(channel, info, options);
    return { channel, version: chooseVersion(offered, options.versions ?? [PROTOCOL_VERSION], info.protocol) };
  } catch (caught) {
    channel[Symbol.dispose]();
    throw caught;
  }
}

async function askVersions(
  channel: UnixChannel,
  info: InfoService,
  options: ConnectOptions,
): Promise<readonly number[]> {
  const timeoutMs = options.infoTimeoutMs ?? INFO_TIMEOUT_MS;
  const result = await channel.call(info.path, new Uint8Array(0), { timeoutMs, signal: options.signal });
  const doing = `could not check ${info.protocol} server version`;
  if (!result.ok) {
    const { kind, code, details } = result.failure;
    const errorCode = kind === 'aborted' ? 'Aborted' : 'VersionCheckFailed';
    throw new ProtoError(errorCode, `${doing}: ${renderStatus(code, details)}`, { detail: details, grpcCode: code });
  }
  try {
    return info.decodeVersions(result.bytes);
  } catch (caught) {
    const text = caught instanceof Error ? caught.message : String(caught);
    throw new ProtoError('VersionCheckFailed', `${doing}: ${text}`, { cause: caught });
  }
}

/**
 * Chooses the highest generation that both sides know.
 *
 * @throws {ProtoError} `NoCommonVersion`, or `VersionUnsupported` for one that this package does not implement.
 */
export function chooseVersion(server: readonly number[], client: readonly number[], protocol: string): number {
  const common = [...server].sort((a, b) => b - a).find((version) => client.includes(version));
  if (common === undefined) {
    const lists = `server: [${server.join(' ')}], client: [${client.join(' ')}]`;
    throw new ProtoError('NoCommonVersion', `no compatible version found, ${lists}`);
  }
  if (common !== PROTOCOL_VERSION) {
    throw new ProtoError('VersionUnsupported', `${protocol} client version ${common} not implemented yet`);
  }
  return common;
}
