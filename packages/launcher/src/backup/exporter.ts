import { stat } from 'node:fs/promises';
import { serveNbd } from '@virtwire/shared-proto/nbd';
import type { NbdHandlers } from '@virtwire/shared-proto/nbd';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { goFileError } from '../disks/go-error.ts';
import { LauncherError, textOf } from '../errors.ts';
import { createNbdHandlers } from './nbd/handlers.ts';
import type { BackupExport } from './request.ts';
import type { Tunnel } from './tunnel.ts';
import { openTunnel } from './tunnel.ts';

const SOCKET_POLL_MS = 1_000;
const GRACE_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
const PAUSE_FACTOR = 2;
const JITTER = 0.1;
/** A tunnel that held so long was a good one: the next pause is a short one again. */
const STEADY_MS = 30_000;

/** What exporting needs. */
export interface BackupExporterDeps {
  readonly clock: Clock;
  /** Socket on which QEMU shows a pull backup. */
  readonly nbdSocket: string;
  /** Connects to an export server; over TLS if not given. */
  readonly openTunnel?: (request: BackupExport, signal: AbortSignal) => Promise<Tunnel>;
}

/** Lets an export server outside the pod read a pull backup, over a connection that is made from here. */
export interface BackupExporter {
  /**
   * Starts exporting in the background, and stops what was exported before. Does nothing when it is this backup.
   *
   * @throws {LauncherError} `BackupFailed` when QEMU shows no backup.
   */
  start(request: BackupExport, log: Logger): Promise<void>;
  /** Ends the export, if there is one. */
  stop(): void;
}

/** Creates an exporter, at rest. */
export function createBackupExporter(deps: BackupExporterDeps): BackupExporter {
  return new TunnelExporter(deps);
}

/** Resolves when `signal` aborts; listens no longer than until `unwanted` does. */
function untilAborted(signal: AbortSignal, unwanted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true, signal: unwanted });
  });
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup_tunnel.go */
class TunnelExporter implements BackupExporter {
  readonly #deps: BackupExporterDeps;
  readonly #handlers: NbdHandlers;
  #running: { readonly request: BackupExport; readonly ending: AbortController } | undefined;

  constructor(deps: BackupExporterDeps) {
    this.#deps = deps;
    this.#handlers = createNbdHandlers(deps.nbdSocket);
  }

  async start(request: BackupExport, log: Logger): Promise<void> {
    const { nbdSocket } = this.#deps;
    const { request: last } = this.#running ?? {};
    if (last?.name === request.name && last.startTime === request.startTime) return;
    try {
      await stat(nbdSocket);
    } catch (caught) {
      const reason = goFileError(caught, 'stat', nbdSocket);
      throw LauncherError.from(reason, 'BackupFailed', 'cannot initialize backup tunnel: ');
    }
    this.stop();
    const ending = new AbortController();
    this.#running = { request, ending };
    void this.#run(request, ending.signal, log).finally(() => {
      ending.abort();
      if (this.#running?.ending === ending) this.#running = undefined;
    });
    void this.#watchSocket(ending, log);
  }

  stop(): void {
    this.#running?.ending.abort();
    this.#running = undefined;
  }

  /** QEMU's socket is there as long as the backup runs. */
  async #watchSocket(ending: AbortController, log: Logger): Promise<void> {
    const { clock, nbdSocket } = this.#deps;
    const { signal } = ending;
    const isThere = () =>
      stat(nbdSocket).then(
        () => true,
        () => false,
      );
    for (;;) {
      const isGone = !(await isThere());
      if (signal.aborted) return;
      if (isGone) break;
      await clock.sleep(SOCKET_POLL_MS, signal);
    }
    log.info(`NBD socket ${nbdSocket} removed, stopping backup tunnel`);
    ending.abort();
  }

  async #run(request: BackupExport, signal: AbortSignal, log: Logger): Promise<void> {
    const { clock } = this.#deps;
    const isOver = (): boolean => signal.aborted;
    let pauseMs = FIRST_PAUSE_MS;
    while (!isOver()) {
      const startedAtMs = clock.now();
      try {
        await this.#serveOnce(request, signal, log);
      } catch (caught) {
        if (!isOver()) log.warn({ reason: textOf(caught) }, 'backup tunnel connection lost, retrying');
      }
      if (clock.now() - startedAtMs > STEADY_MS) pauseMs = FIRST_PAUSE_MS;
      await clock.sleep(pauseMs * (1 + JITTER * Math.random()), signal);
      pauseMs = Math.min(pauseMs * PAUSE_FACTOR, LONGEST_PAUSE_MS);
    }
  }

  async #serveOnce(request: BackupExport, signal: AbortSignal, log: Logger): Promise<void> {
    using tunnel = await (this.#deps.openTunnel ?? openTunnel)(request, signal);
    const server = serveNbd(tunnel.stream, this.#handlers, (error) => {
      log.debug({ reason: error }, 'backup tunnel fault');
    });
    log.info(`backup tunnel: connected via CONNECT to https://${request.address}, serving NBD`);
    const closed = new AbortController();
    await Promise.race([server.closed, untilAborted(signal, closed.signal)]);
    closed.abort();
    await server.stop(GRACE_MS);
  }
}
