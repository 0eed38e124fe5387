#!/usr/bin/env node
import { createLogger } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { systemClock } from './config/clock.ts';
import { ensureDirectories } from './config/directories.ts';
import type { LauncherFlags } from './config/flags.ts';
import { parseFlags, renderFlagHelp } from './config/flags.ts';
import { makeEngineFrugal } from './config/frugal-engine.ts';
import { startIdleCollector } from './config/idle-collector.ts';
import type { LogOutput } from './config/log-output.ts';
import { createLogOutput } from './config/log-output.ts';
import { sourcePositions } from './config/source-positions.ts';
import { LauncherError, textOf } from './errors.ts';
import type { Sidecars } from './hooks/sidecars.ts';
import { startLibvirtDaemons } from './libvirt-daemon/start.ts';

/** Exit code of a launcher that cannot do its work, that of a Go panic. */
const EXIT_FAILED = 2;
/** Where hook sidecars have their sockets. */
const HOOKS_DIR = '/var/run/kubevirt-hooks';
const INTEGER = /^[+-]?\d+$/;
const STOP_SIGNALS = ['SIGINT', 'SIGHUP', 'SIGTERM', 'SIGQUIT'] as const;

function verbosityOf(flags: LauncherFlags, text: string | undefined): number {
  return text !== undefined && INTEGER.test(text) ? Number(text) : flags.verbosity;
}

function installStopSignals(log: Logger): AbortSignal {
  const stopping = new AbortController();
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      if (stopping.signal.aborted) return;
      log.info(`Received signal ${name}`);
      stopping.abort();
    });
  }
  return stopping.signal;
}

/** Most launchers have no sidecars, and do without the code for them. */
async function waitForSidecars(flags: LauncherFlags, log: Logger, signal: AbortSignal): Promise<Sidecars> {
  const [{ collectSidecars }, { createSidecars }] = await Promise.all([
    import('./hooks/collect.ts'),
    import('./hooks/sidecars.ts'),
  ]);
  const wanted = { baseDir: HOOKS_DIR, count: flags.hookSidecars, timeoutMs: flags.qemuTimeoutMs };
  return createSidecars(await collectSidecars({ clock: systemClock, log, signal }, wanted), log);
}

async function run(flags: LauncherFlags, verbosity: number, log: Logger, output: LogOutput): Promise<void> {
  const { env } = process;
  log.info(`Hypervisor set to ${flags.hypervisor}`);
  if (flags.unknown.length > 0) log.warn(`Ignoring unknown flags: ${flags.unknown.join(' ')}`);
  const stopSignal = installStopSignals(log);
  ensureDirectories(flags);
  if (flags.simulateCrash) throw new LauncherError('SimulatedCrash', 'Simulated virt-launcher crash');
  const sidecars = flags.hookSidecars > 0 ? await waitForSidecars(flags, log, stopSignal) : undefined;
  const writeLine = (line: string): void => output.write(`${line}\n`);
  const daemons = startLibvirtDaemons(flags, env, { clock: systemClock, log, verbosity, writeLine });
  try {
    // The daemon starts while the rest of the program is loaded.
    const { runLauncher } = await import('./launcher.ts');
    const onReady = (): void => void startIdleCollector(makeEngineFrugal());
    const common = { flags, env, clock: systemClock, log, daemons, sidecars, writeLine, stopSignal };
    await runLauncher({ ...common, onReady });
  } catch (caught) {
    await daemons.stop();
    throw caught;
  }
}

function fail(log: Logger, output: LogOutput, caught: unknown): never {
  log.fatal({ reason: caught }, textOf(caught));
  output.write(`panic: ${textOf(caught)}\n`);
  output.flush();
  process.exit(EXIT_FAILED);
}

async function main(argv: readonly string[]): Promise<void> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(renderFlagHelp());
    return;
  }
  const output = createLogOutput(2);
  const resolvePosition = sourcePositions(import.meta.filename);
  let flags: LauncherFlags;
  try {
    flags = parseFlags(argv);
  } catch (caught) {
    return fail(createLogger('virt-launcher', { destination: output, resolvePosition }), output, caught);
  }
  const wanted = process.env['VIRT_LAUNCHER_LOG_VERBOSITY'];
  const verbosity = verbosityOf(flags, wanted);
  const log = createLogger('virt-launcher', { verbosity, destination: output, resolvePosition });
  if (wanted !== undefined && !INTEGER.test(wanted)) {
    log.warn(`failed to set log verbosity. It should be an integer, got ${wanted} instead.`);
  }
  process.on('uncaughtException', (caught) => fail(log, output, caught));
  try {
    await run(flags, verbosity, log, output);
  } catch (caught) {
    fail(log, output, caught);
  }
  output.flush();
  process.exit(0);
}

await main(process.argv.slice(2));
