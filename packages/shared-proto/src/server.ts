/** Options of a server on a unix socket. */
export interface ServeOptions {
  /** Connections at one time; the next one is closed at once. Default 256. */
  readonly maxConnections?: number | undefined;
  /** Told about faults that no caller hears of: a connection that broke the protocol, a failed accept. */
  readonly onFault?: ((error: Error) => void) | undefined;
  /** Protocol generations that the info service lists; only tests of skew have a reason to change it. Default [1]. */
  readonly versions?: readonly number[] | undefined;
}

/** A gRPC server on a unix socket. */
export interface RpcServer extends AsyncDisposable {
  readonly socketPath: string;
  /** Connections that are open now, those that never sent a byte included. */
  readonly connectionCount: number;
  /** Stops listening (which removes the socket file), lets running calls end, and cuts what is left after the grace time. */
  stop(graceMs?: number): Promise<void>;
}
