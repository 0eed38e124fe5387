import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createHandler, createStoreSource, DEFAULT_HANDLER_CONFIG } from '@virtwire/handler';
import type { Isolation, NodeParts } from '@virtwire/handler';
import { createLogger } from '@virtwire/telemetry';
import { CompatError } from '../errors.ts';
import type { HandlerDirs, HandlerStart, ReportedEvent, RunningHandler } from './subjects.ts';

/** Finds the pod of a command socket by its path, as the kernel's word about the peer does on a real node. */
function isolationOf(dirs: HandlerDirs, socketFile: string): Isolation {
  const [podUid] = relative(realpathSync(dirs.podsDir), realpathSync(socketFile)).split('/');
  if (podUid === undefined) throw new CompatError('ConnectFailed', `${socketFile} belongs to no pod`);
  return { pid: process.pid, ppid: process.ppid, rootPath: join(dirs.podRoots, podUid) };
}

/** Node-side work that has nothing to do with the wire is done already. */
function partsOf(dirs: HandlerDirs): Partial<NodeParts> {
  const nothing = (): Promise<void> => Promise.resolve();
  const done = (): Promise<boolean> => Promise.resolve(true);
  return {
    network: { setUp: nothing, tearDown: nothing, podInterface: () => Promise.resolve(undefined) },
    devices: { prepare: nothing },
    memlock: { adjust: nothing },
    containerDisks: { ready: done, mountAndVerify: nothing, unmount: nothing },
    hotplug: {
      mount: () => Promise.resolve('mounted'),
      unmount: nothing,
      unmountAll: nothing,
      isMounted: done,
    },
    detectIsolation: async (socketFile) => isolationOf(dirs, socketFile),
    selinuxContext: () => Promise.resolve('none'),
    fileSize: () => Promise.resolve(0),
  };
}

/** Starts virtwire's own handler in this process, with every part that talks to launchers as it is on a node. */
export async function startOurHandler(start: HandlerStart): Promise<RunningHandler> {
  const { dirs, store, nodeName } = start;
  const log = createLogger('virt-handler', { destination: { write: start.log } });
  const events: ReportedEvent[] = [];
  const source = createStoreSource({ store, log }, nodeName);
  const handler = createHandler(
    {
      source,
      log,
      parts: partsOf(dirs),
      events: {
        event: (_object, type, reason, message) => {
          events.push({ type, reason, message });
          start.onEvent?.({ type, reason, message });
        },
      },
    },
    {
      ...DEFAULT_HANDLER_CONFIG,
      nodeName,
      shareDir: dirs.shareDir,
      privateDir: dirs.privateDir,
      podsDir: dirs.podsDir,
      domainResyncPeriodMs: start.resyncMs,
      health: join(dirs.privateDir, 'h'),
    },
  );
  handler.failed.catch(() => undefined);
  await handler.start();
  return {
    events,
    missingParts: handler.missingParts,
    async stop() {
      await handler.stop();
      source[Symbol.dispose]();
    },
  };
}
