import { renameSync, rmSync } from 'node:fs';
import { connectCmd, serveCmd, unwrap } from '@virtwire/shared-proto';
import type { CmdHandlers, RpcServer } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { LauncherPaths } from '../config/paths.ts';
import { LauncherError, textOf } from '../errors.ts';

const SELF_TEST_LIMIT_MS = 15_000;
const SELF_TEST_EVERY_MS = 1_000;
const STOP_LIMIT_MS = 1_000;

/** The launcher's command server, listening. */
export interface CmdServer {
  /** Moves the socket to the name under which handlers look for it. */
  markReady(): void;
  /** Ends running calls within a second and stops listening. */
  stop(): Promise<void>;
}

async function probe(socketPath: string): Promise<void> {
  using client = await connectCmd(socketPath);
  unwrap(await client.ping());
}

async function testUntilItWorks(socketPath: string, clock: Clock): Promise<void> {
  const giveUpAtMs = clock.now() + SELF_TEST_LIMIT_MS;
  for (;;) {
    try {
      await probe(socketPath);
      return;
    } catch (caught) {
      if (clock.now() >= giveUpAtMs) {
        throw LauncherError.from(caught, 'CmdServerFailed', 'failed to connect to cmd server: ');
      }
    }
    await clock.sleep(SELF_TEST_EVERY_MS);
  }
}

/**
 * Serves the command socket under its first name, and proves over the wire that it works.
 *
 * @throws {LauncherError} `CmdServerFailed` when it does not within 15 s
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:120
 */
export async function startCmdServer(
  handlers: CmdHandlers,
  paths: LauncherPaths,
  clock: Clock,
  log: Logger,
): Promise<CmdServer> {
  let server: RpcServer;
  try {
    server = await serveCmd(paths.initSocket, handlers, {
      onFault: (error) => log.debug({ reason: error }, 'cmd server connection fault'),
    });
  } catch (caught) {
    throw LauncherError.from(caught, 'CmdServerFailed', 'failed to start cmd server: ');
  }
  await testUntilItWorks(paths.initSocket, clock);
  return {
    markReady() {
      try {
        renameSync(paths.initSocket, paths.readySocket);
      } catch (caught) {
        throw LauncherError.from(caught, 'CmdServerFailed', 'failed to mark as ready: ');
      }
    },
    async stop() {
      log.info('stopping cmd server');
      try {
        await server.stop(STOP_LIMIT_MS);
        log.info('cmd server stopped');
      } catch (caught) {
        log.error(`timeout on stopping the cmd server, continuing anyway. ${textOf(caught)}`);
      }
      rmSync(paths.initSocket, { force: true });
    },
  };
}
