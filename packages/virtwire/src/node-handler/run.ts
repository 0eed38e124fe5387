import { mkdirSync } from 'node:fs';
import { clusterConfig, createHandler, createStoreSource } from '@virtwire/handler';
import type { EventRecorder } from '@virtwire/handler';
import { createLogger, objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { errorText } from '../errors.ts';
import { openEventFiles } from '../state/event-files.ts';
import type { EventFiles } from '../state/event-files.ts';
import { VmiFiles } from '../state/vmi-files.ts';
import { parseNodeHandlerFlags } from './flags.ts';

/** Events go into the log and into a file per VM: there is no API server to keep them. */
function recordEvents(files: EventFiles, log: Logger): EventRecorder {
  return {
    event({ kind, namespace, name, uid }, type, reason, message) {
      const line = { ...objectFields({ kind, metadata: { namespace, name, uid } }), event: reason };
      if (type === 'Warning') log.warn(line, message);
      else log.info(line, message);
      if (namespace === '') return; // about the node
      try {
        files.append(`${namespace}/${name}`, { at: new Date().toISOString(), type, reason, message, uid });
      } catch (caught) {
        log.warn({ reason: errorText(caught) }, 'cannot keep an event');
      }
    },
  };
}

function untilSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve(name));
  });
}

/** Runs the handler of a node without Kubernetes until it is told to end. Its VMs go on without it. */
export async function runNodeHandler(argv: readonly string[]): Promise<number> {
  const log = createLogger('virt-handler');
  try {
    const flags = parseNodeHandlerFlags(argv);
    const told = untilSignal();
    mkdirSync(flags.shareDir, { recursive: true, mode: 0o755 });
    using source = createStoreSource({ store: new VmiFiles(flags.vmiDir), log }, flags.nodeName);
    const config = clusterConfig({ configuration: { developerConfiguration: { useEmulation: flags.useEmulation } } });
    const facts = { config, topology: undefined, plugins: [] };
    const handler = createHandler(
      { source, events: recordEvents(openEventFiles(flags.eventsDir), log), log, cluster: () => facts },
      flags.config,
    );
    await handler.start();
    const signal = await Promise.race([told, handler.failed]);
    log.info({}, `received ${signal}, stopping`);
    await handler.stop();
    return 0;
  } catch (caught) {
    log.fatal({ reason: errorText(caught) }, 'the handler cannot go on');
    return 1;
  }
}
