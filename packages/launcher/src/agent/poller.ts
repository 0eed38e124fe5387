import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { textOf } from '../errors.ts';
import { createGuestInfoQuestion } from './guest-info-question.ts';
import { GUEST_INFO } from './parse-guest-info.ts';
import { parseFsFreezeReply, parseFsInfoReply, parseGuestInfoReply } from './parse-reply.ts';
import type { AgentStore, ShownAgentFacts } from './store.ts';
import type { AgentFacts } from './types.ts';

/** The longest time between two questions of each kind, in milliseconds. */
export interface AgentIntervals {
  readonly sysMs: number;
  readonly fileMs: number;
  readonly userMs: number;
  readonly versionMs: number;
  readonly fsfreezeMs: number;
}

/** What the poller needs. */
export interface AgentPollerDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'agentCommand' | 'guestInfo' | 'setAgentTimeout'>;
  readonly store: AgentStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called for each change of what the Domain document shows. May hold the worker back. */
  readonly onUpdate: (shown: ShownAgentFacts) => Promise<void>;
}

/** Asks the guest agent, again and again, while it is there. */
export interface AgentPoller {
  /** Starts all workers from scratch; does nothing while they run. */
  start(): void;
  /** Stops all workers; does nothing when none runs. */
  stop(): void;
  readonly isRunning: boolean;
}

/** First pause of a worker; it doubles after each poll up to the worker's maximum. */
const FIRST_INTERVAL_MS = 10_000;
/** Whatever the flags say, a guest is not asked more often. */
const SHORTEST_INTERVAL_MS = 1_000;
/**
 * What libvirt waits for an answer. While it waits, nobody else can ask the agent anything, and an agent that lost a
 * question never answers it. Longer than the minute that a handler has for freezing file systems.
 */
const ANSWER_TIMEOUT_SECONDS = 90;

type Worker =
  | { readonly command: string; readonly parse: (reply: string) => AgentFacts | undefined; readonly maxMs: number }
  | { readonly types: number; readonly maxMs: number };

function workersOf(intervals: AgentIntervals): readonly Worker[] {
  const system = GUEST_INFO.interfaces | GUEST_INFO.os | GUEST_INFO.hostname | GUEST_INFO.timezone;
  return [
    { command: 'guest-info', parse: parseGuestInfoReply, maxMs: intervals.versionMs },
    { command: 'guest-get-fsinfo', parse: parseFsInfoReply, maxMs: intervals.fileMs },
    { command: 'guest-fsfreeze-status', parse: parseFsFreezeReply, maxMs: intervals.fsfreezeMs },
    { types: system, maxMs: intervals.sysMs },
    { types: GUEST_INFO.users, maxMs: intervals.userMs },
    { types: GUEST_INFO.load, maxMs: intervals.sysMs },
  ];
}

async function limitAnswers({ libvirt, log }: AgentPollerDeps, domainName: string): Promise<void> {
  try {
    await libvirt.setAgentTimeout(await libvirt.lookupDomainByName(domainName), ANSWER_TIMEOUT_SECONDS);
  } catch (caught) {
    log.debug({ reason: caught }, 'Cannot limit how long the guest agent is waited for');
  }
}

/** What a worker asks; undefined for an answer that fails or cannot be read. */
function questionOf(deps: AgentPollerDeps, domainName: string, worker: Worker): () => Promise<AgentFacts | undefined> {
  const { libvirt, log } = deps;
  if ('types' in worker) {
    const question = createGuestInfoQuestion(libvirt, worker.types);
    return async () => {
      try {
        return await question.ask(domainName);
      } catch (caught) {
        log.debug(`Fetching guest info failed: ${textOf(caught)}`);
        return undefined;
      }
    };
  }
  const { command, parse } = worker;
  return async () => {
    try {
      const domain = await libvirt.lookupDomainByName(domainName);
      const facts = parse(await libvirt.agentCommand(domain, JSON.stringify({ execute: command })));
      if (facts === undefined) log.debug({ command }, 'Cannot parse guest agent reply');
      return facts;
    } catch {
      return undefined;
    }
  };
}

async function runWorker(
  deps: AgentPollerDeps,
  domainName: string,
  worker: Worker,
  signal: AbortSignal,
): Promise<void> {
  let intervalMs = 0;
  let dueMs = 0;
  const ask = questionOf(deps, domainName, worker);
  const isStopped = (): boolean => signal.aborted;
  while (!isStopped()) {
    const facts = await ask();
    if (isStopped()) return;
    for (const shown of facts === undefined ? [] : deps.store.merge(facts)) await deps.onUpdate(shown);
    const longerMs = intervalMs === 0 ? FIRST_INTERVAL_MS : intervalMs * 2;
    const nextMs = Math.min(longerMs, Math.max(worker.maxMs, SHORTEST_INTERVAL_MS));
    const nowMs = deps.clock.now();
    dueMs = nextMs === intervalMs ? Math.max(dueMs + nextMs, nowMs) : nowMs + nextMs;
    intervalMs = nextMs;
    await deps.clock.sleep(dueMs - nowMs, signal);
  }
}

/**
 * Creates a poller at rest.
 *
 * An answer that fails, cannot be parsed or arrives after a stop leaves the store as it is; nothing that a guest sends
 * can end a worker.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go
 */
export function createAgentPoller(deps: AgentPollerDeps, domainName: string, intervals: AgentIntervals): AgentPoller {
  let running: AbortController | undefined;
  return {
    get isRunning() {
      return running !== undefined;
    },
    start() {
      if (running !== undefined) return;
      const controller = new AbortController();
      running = controller;
      const limited = limitAnswers(deps, domainName);
      for (const worker of workersOf(intervals)) {
        if ('types' in worker) deps.log.info(`Starting agent poller with API operations: ${worker.types}`);
        else deps.log.info(`Starting agent poller with commands: [${worker.command}]`);
        void limited.then(() => runWorker(deps, domainName, worker, controller.signal));
      }
    },
    stop() {
      running?.abort();
      running = undefined;
    },
  };
}
