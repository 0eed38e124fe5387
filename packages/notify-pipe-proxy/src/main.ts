#!/usr/bin/env node
import { PidHandle } from '@virtwire/host';
import { createLogger, type Logger } from '@virtwire/telemetry';

import { type CliOptions, EXIT, HELP, parseCli } from './cli.ts';
import { createNotifyPipe } from './pipe.ts';
import { createProxySink } from './sink.ts';

async function main(args: readonly string[]): Promise<number> {
  const cli = parseCli(args);
  if (cli.kind === 'help') {
    process.stdout.write(HELP);
    return EXIT.stopped;
  }
  if (cli.kind === 'usage') {
    process.stderr.write(`${cli.message}\n`);
    return EXIT.usage;
  }
  const log = createLogger('notify-pipe-proxy', { verbosity: cli.options.verbosity });
  return run(log, cli.options).catch((caught: unknown) => {
    log.error({ reason: caught }, 'the notify pipe could not be made');
    return EXIT.failed;
  });
}

async function run(log: Logger, options: CliOptions): Promise<number> {
  const stop = new AbortController();
  const stopped = Promise.race(['SIGTERM', 'SIGINT'].map((name) => signalled(name, stop.signal)));
  using pod = PidHandle.open(options.podPid);
  using root = pod.root();
  const deps = { log, sink: createProxySink(log, options.target) };
  await using pipe = await createNotifyPipe(deps, {
    pod: { root },
    directory: options.directory,
    socketName: options.socketName,
    owner: options.owner,
  });
  log.info({ socket: pipe.pathInPod, target: options.target }, 'serving the notify pipe');
  const reason = await Promise.race([stopped.then(() => EXIT.stopped), podEnd(pod, stop.signal)]);
  stop.abort();
  return reason;
}

function signalled(name: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = (): void => resolve();
    process.once(name, onSignal);
    signal.addEventListener('abort', () => process.off(name, onSignal), { once: true });
  });
}

async function podEnd(pod: PidHandle, signal: AbortSignal): Promise<number> {
  await pod.exited(signal);
  return EXIT.podGone;
}

// Connections that are still open must not hold a process whose work is done.
process.exit(await main(process.argv.slice(2)));
