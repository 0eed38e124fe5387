import { randomUUID } from 'node:crypto';
import {
  ConnectDomainEventAgentLifecycleReason as AgentReason,
  ConnectDomainEventAgentLifecycleState as AgentState,
  DomainCrashedReason,
  DomainEventType as Event,
  DomainEventResumedDetailType as Resumed,
  DomainEventShutdownDetailType as ShutdownDetail,
  DomainEventStartedDetailType as Started,
  DomainEventStoppedDetailType as Stopped,
  DomainEventSuspendedDetailType as Suspended,
  DomainPausedReason,
  DomainRunningReason,
  DomainShutdownReason,
  DomainShutoffReason,
  DomainState,
  ErrorDomain,
  ErrorNumber,
} from '../gen/constants.gen.ts';
import type { DomainRef } from '../gen/types.gen.ts';
import { describeDevices } from './devices.ts';
import { agentNotConnected, daemonError, descriptorsMissing, invalidState } from './errors.ts';
import { FakeConsole } from './console.ts';
import { askAgent } from './guest.ts';
import type { AgentCommand, GuestBehaviour } from './guest.ts';
import type { EmitEvent } from './hypervisor.ts';
import type { FakeJob } from './job.ts';
import { child, childrenOf, childText, renderXml, setChildText } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** What a domain needs of its hypervisor. */
export interface DomainHost {
  readonly emit: EmitEvent;
  readonly emitMonitor: (domain: FakeDomain, event: string) => void;
  readonly nextId: () => number;
  /** Runs later, unless the daemon is closed before. */
  readonly schedule: (delayMs: number, action: () => void) => void;
  /** A transient domain has stopped. */
  readonly forget: (domain: FakeDomain) => void;
}

/** One domain of the fake daemon, with levers for what a guest or QEMU does by itself. */
export class FakeDomain {
  readonly name: string;
  readonly uuid: string;
  readonly host: DomainHost;
  /** What is used at the next start. */
  definition: XmlElement;
  /** What runs now. */
  live: XmlElement | undefined;
  isPersistent: boolean;
  behaviour: GuestBehaviour;
  id = -1;
  state: number = DomainState.SHUTOFF;
  reason: number = DomainShutoffReason.UNKNOWN;
  isAgentConnected = false;
  isAutostarted = false;
  /** Statistics beyond the basic ones, by typed parameter name. */
  readonly stats = new Map<string, number | bigint | boolean | string>();
  readonly diskErrors = new Map<string, number>();
  /** XML of checkpoints by name, in the order of their making. */
  readonly checkpoints = new Map<string, string>();
  readonly console = new FakeConsole();
  /** The job in progress. */
  job: FakeJob | undefined;
  /** The job that ended last, for GET_JOB_STATS with COMPLETED. */
  completedJob: FakeJob | undefined;
  readonly #descriptorGroups = new Map<string, { readonly count: number; readonly owner: object }>();
  /** Texts of GET_MESSAGES. */
  messages: string[] = [];

  constructor(host: DomainHost, definition: XmlElement, isPersistent: boolean, behaviour: GuestBehaviour) {
    this.host = host;
    this.definition = definition;
    this.isPersistent = isPersistent;
    this.behaviour = behaviour;
    this.name = requiredName(definition);
    this.uuid = (childText(definition, 'uuid') ?? smbiosUuid(definition))?.toLowerCase() ?? randomUUID();
    setChildText(definition, 'uuid', this.uuid);
  }

  /** As it appears on the wire. */
  get ref(): DomainRef {
    return { name: this.name, uuid: this.uuid, id: this.id };
  }

  get isActive(): boolean {
    return this.id !== -1;
  }

  /** The description that counts: of the running domain, else the definition. */
  get current(): XmlElement {
    return this.live ?? this.definition;
  }

  get hasAgentChannel(): boolean {
    const channels = childrenOf(child(this.current, 'devices'), 'channel');
    return channels.some((channel) => child(channel, 'target')?.attributes['name'] === 'org.qemu.guest_agent.0');
  }

  /** @throws {LibvirtError} OPERATION_INVALID when it does not run. */
  assertActive(domain: number = ErrorDomain.QEMU): void {
    if (!this.isActive) throw invalidState('domain is not running', domain);
  }

  /** How many descriptors it was given, by the name of their group. */
  get descriptorGroups(): ReadonlyMap<string, number> {
    return new Map([...this.#descriptorGroups].map(([name, { count }]) => [name, count]));
  }

  /** Takes descriptors that a client has passed; they last as long as the client. */
  takeDescriptors(name: string, count: number, owner: object): void {
    this.#descriptorGroups.set(name, { count, owner });
  }

  /** A client has gone, and what it passed. */
  dropDescriptors(owner: object): void {
    for (const [name, group] of this.#descriptorGroups) if (group.owner === owner) this.#descriptorGroups.delete(name);
  }

  /** Starts QEMU. */
  start(isPaused: boolean): void {
    if (this.isActive) throw invalidState('domain is already running');
    const missing = descriptorGroupsIn(this.definition).find((name) => !this.#descriptorGroups.has(name));
    if (missing !== undefined) throw descriptorsMissing(missing);
    this.id = this.host.nextId();
    this.live = structuredClone(this.definition);
    this.live.attributes['id'] = String(this.id);
    describeDevices(this.live, this);
    if (this.hasAgentChannel) this.#emitAgent(AgentState.DISCONNECTED, AgentReason.DOMAIN_STARTED);
    if (isPaused) {
      this.#set(DomainState.PAUSED, DomainPausedReason.USER);
      this.#emit(Event.STARTED, Started.BOOTED);
      this.#emit(Event.SUSPENDED, Suspended.PAUSED);
    } else {
      this.#set(DomainState.RUNNING, DomainRunningReason.BOOTED);
      this.host.emitMonitor(this, 'RESUME');
      // The daemon's own order: its CPUs run before it says that it has started.
      this.#emit(Event.RESUMED, Resumed.UNPAUSED);
      this.#emit(Event.STARTED, Started.BOOTED);
      this.#bootAgent();
    }
  }

  /** Comes from another daemon: its CPUs run once all of it is here. */
  arrive(): void {
    if (this.isActive) throw invalidState('domain is already running');
    this.id = this.host.nextId();
    this.live = structuredClone(this.definition);
    this.live.attributes['id'] = String(this.id);
    describeDevices(this.live, this);
    this.#set(DomainState.PAUSED, DomainPausedReason.MIGRATION);
    this.#emit(Event.STARTED, Started.MIGRATED);
    this.#set(DomainState.RUNNING, DomainRunningReason.MIGRATED);
    this.#emit(Event.RESUMED, Resumed.MIGRATED);
    this.#bootAgent();
  }

  suspend(): void {
    this.assertActive();
    if (this.state === DomainState.PAUSED) return;
    this.#set(DomainState.PAUSED, DomainPausedReason.USER);
    this.host.emitMonitor(this, 'STOP');
    this.#emit(Event.SUSPENDED, Suspended.PAUSED);
  }

  resume(): void {
    this.assertActive();
    if (this.state === DomainState.RUNNING) return;
    this.#set(DomainState.RUNNING, DomainRunningReason.UNPAUSED);
    this.host.emitMonitor(this, 'RESUME');
    this.#emit(Event.RESUMED, Resumed.UNPAUSED);
    this.#bootAgent();
  }

  /** Asks the guest to power off. */
  requestShutdown(): void {
    this.assertActive(ErrorDomain.DOMAIN);
    if (this.behaviour.onShutdown === 'ignore' || this.state !== DomainState.RUNNING) return;
    this.host.schedule(this.behaviour.shutdownDelayMs ?? 0, () => this.powerOffFromGuest());
  }

  /** Ends QEMU by force. */
  destroy(): void {
    this.assertActive(ErrorDomain.DOMAIN);
    this.host.emitMonitor(this, 'SHUTDOWN');
    this.#emit(Event.SHUTDOWN, ShutdownDetail.HOST);
    this.#stop(DomainShutoffReason.DESTROYED, Stopped.DESTROYED);
  }

  /** Lever: the guest powers itself off. */
  powerOffFromGuest(): void {
    if (!this.isActive || this.state !== DomainState.RUNNING) return;
    if (this.isAgentConnected) this.disconnectAgent();
    this.#set(DomainState.SHUTDOWN, DomainShutdownReason.UNKNOWN);
    this.host.emitMonitor(this, 'SHUTDOWN');
    this.#emit(Event.SHUTDOWN, ShutdownDetail.GUEST);
    this.host.schedule(0, () => {
      if (this.isActive) this.#stop(DomainShutoffReason.SHUTDOWN, Stopped.SHUTDOWN);
    });
  }

  /** Lever: the QEMU process dies without a word. */
  killQemu(): void {
    this.assertActive();
    this.#stop(DomainShutoffReason.CRASHED, Stopped.FAILED);
  }

  /** Lever: the guest's kernel panics, with `on_crash` preserving it. */
  panic(): void {
    this.assertActive();
    this.#set(DomainState.CRASHED, DomainCrashedReason.PANICKED);
    this.#emit(Event.CRASHED, 0);
  }

  /** Lever: the guest reboots. */
  rebootFromGuest(): void {
    this.assertActive();
    this.host.emit('reboot', this, {});
  }

  /** Lever: a disk fails and the guest is paused for it. */
  ioError(disk: { readonly srcPath: string; readonly devAlias: string; readonly reason?: string }): void {
    this.assertActive();
    const { srcPath, devAlias, reason = '' } = disk;
    this.#set(DomainState.PAUSED, DomainPausedReason.IOERROR);
    this.host.emit('ioError', this, { srcPath, devAlias, action: 1 });
    this.host.emit('ioErrorReason', this, { srcPath, devAlias, action: 1, reason });
    this.#emit(Event.SUSPENDED, Suspended.IOERROR);
  }

  /** Lever: the domain has been migrated away. */
  migratedAway(): void {
    this.assertActive();
    this.#set(DomainState.PAUSED, DomainPausedReason.MIGRATION);
    this.#emit(Event.SUSPENDED, Suspended.MIGRATED);
    this.#stop(DomainShutoffReason.MIGRATED, Stopped.MIGRATED);
  }

  /** Lever: the agent in the guest comes up. */
  connectAgent(): void {
    if (this.isAgentConnected || !this.isActive || !this.hasAgentChannel) return;
    this.isAgentConnected = true;
    this.#markChannel('connected');
    this.#emitAgent(AgentState.CONNECTED, AgentReason.CHANNEL);
  }

  /** Lever: the agent goes away. */
  disconnectAgent(): void {
    if (!this.isAgentConnected) return;
    this.isAgentConnected = false;
    this.#markChannel('disconnected');
    this.#emitAgent(AgentState.DISCONNECTED, AgentReason.CHANNEL);
  }

  /** Sends a command to the guest's agent. */
  askAgent(command: AgentCommand): unknown {
    this.assertActive();
    if (!this.hasAgentChannel) {
      const text = 'argument unsupported: QEMU guest agent is not configured';
      throw daemonError(ErrorNumber.ARGUMENT_UNSUPPORTED, ErrorDomain.QEMU, text);
    }
    if (!this.isAgentConnected || this.state !== DomainState.RUNNING) throw agentNotConnected();
    return askAgent(this.behaviour, command);
  }

  /** XML as GET_XML_DESC gives it. */
  describe(isInactive: boolean): string {
    return renderXml(isInactive ? this.definition : this.current);
  }

  #stop(reason: number, detail: number): void {
    this.isAgentConnected = false;
    this.#set(DomainState.SHUTOFF, reason);
    this.id = -1;
    this.live = undefined;
    this.console.close();
    this.#emit(Event.STOPPED, detail);
    if (!this.isPersistent) this.host.forget(this);
  }

  #bootAgent(): void {
    if (this.behaviour.hasAgent !== true || !this.hasAgentChannel) return;
    const { id } = this;
    this.host.schedule(this.behaviour.agentDelayMs ?? 0, () => {
      if (this.id === id && this.state === DomainState.RUNNING) this.connectAgent();
    });
  }

  #markChannel(state: string): void {
    for (const channel of childrenOf(child(this.live, 'devices'), 'channel')) {
      const target = child(channel, 'target');
      if (target?.attributes['name'] === 'org.qemu.guest_agent.0') target.attributes['state'] = state;
    }
  }

  #set(state: number, reason: number): void {
    this.state = state;
    this.reason = reason;
  }

  #emit(event: number, detail: number): void {
    this.host.emit('lifecycle', this, { event, detail });
  }

  #emitAgent(state: number, reason: number): void {
    this.host.emit('agentLifecycle', this, { state, reason });
  }
}

/** Names of the groups of descriptors that a description wants: a disk's, or the one for IOMMUFD. */
function descriptorGroupsIn(element: XmlElement): readonly string[] {
  const { fdgroup } = element.attributes;
  return [...(fdgroup === undefined ? [] : [fdgroup]), ...childrenOf(element).flatMap(descriptorGroupsIn)];
}

function requiredName(definition: XmlElement): string {
  const fail = (message: string): never => {
    throw daemonError(ErrorNumber.XML_ERROR, ErrorDomain.DOMAIN, message);
  };
  if (definition.name !== 'domain') fail(`XML error: unexpected root element <${definition.name}>, expecting <domain>`);
  const name = childText(definition, 'name');
  if (name === undefined || name === '') return fail('missing element: name');
  if (childText(definition, 'os/type') === undefined) fail('XML error: an os <type> must be specified');
  return name;
}

/** As libvirt does, a domain without a uuid of its own takes the one of its SMBIOS data. */
function smbiosUuid(definition: XmlElement): string | undefined {
  const entries = childrenOf(child(definition, 'sysinfo/system'), 'entry');
  const entry = entries.find(({ attributes }) => attributes['name'] === 'uuid');
  return entry?.children
    .filter((part) => typeof part === 'string')
    .join('')
    .trim();
}
