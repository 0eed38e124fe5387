import type { SideUnderTest } from '../cell.ts';
import type { ReleaseLine } from '../release-line.ts';
import type { Mutation } from './mutation.ts';

/** A fault in the source of our handler, our launcher or their protocol library, and the cell that must notice it. */
export interface ProductMutant extends Mutation {
  readonly name: string;
  readonly side: SideUnderTest;
  readonly killedBy: { readonly scenario: string; readonly line: ReleaseLine };
}

type Killer = ProductMutant['killedBy'];

const by = (scenario: string, line: ReleaseLine): Killer => ({ scenario, line });

function mutant(side: SideUnderTest, name: string, file: string, [find, replace]: [string, string], killedBy: Killer) {
  return { name, side, file: `packages/${file}`, find, replace, killedBy };
}

const NO_VMI = 'No valid vmi object present in command server request';

const OF_HANDLER: readonly ProductMutant[] = [
  mutant(
    'handler',
    'guest info is asked for while the agent is away',
    'handler/src/status/compute.ts',
    ['isAlive(input.domain) && isAgentConnected', 'isAlive(input.domain) && !isAgentConnected'],
    by('guest-agent', 'v1.9'),
  ),
  mutant(
    'handler',
    'an RPC that is not implemented is told as a failed synchronisation',
    'handler/src/vmi/controller.ts',
    ["hasErrorCode(error, 'Unimplemented') ? undefined : error", 'error'],
    by('missing-rpcs', 'v1.0'),
  ),
  mutant(
    'handler',
    'a launcher without guest info keeps the status from being written',
    'handler/src/status/gather.ts',
    ["if (hasErrorCode(error, 'Unimplemented')) return undefined;", ''],
    by('missing-rpcs', 'v1.9'),
  ),
  mutant(
    'handler',
    'a memory dump that the launcher lacks ends the pass',
    'handler/src/vmi/executors.ts',
    ["if (hasErrorCode(error, 'Unimplemented')) {", 'if (error === undefined) {'],
    by('missing-rpcs', 'v1.4'),
  ),
  mutant(
    'handler',
    'the pipe takes events about other VMs',
    'handler/src/notify-server/event-handlers.ts',
    ['if (identity === undefined) return undefined;', 'return undefined;'],
    by('bad-requests', 'v1.0'),
  ),
  mutant(
    'handler',
    'a Kubernetes event about another UID is passed on',
    'handler/src/notify-server/event-handlers.ts',
    ["if (vmi?.metadata.uid !== uid) return refuse('VMI not found');", 'if (vmi === undefined) return;'],
    by('bad-requests', 'v1.8'),
  ),
  mutant(
    'handler',
    'an error of libvirt at the launcher drops the domain',
    'handler/src/notify-server/event-handlers.ts',
    ['if (domain === undefined) return;', "if (domain === undefined) return void store.delete('ns1/vm1');"],
    by('bad-requests', 'v1.4'),
  ),
  mutant(
    'handler',
    'an event from before the start is believed while the VM runs',
    'handler/src/notify-server/event-handlers.ts',
    ['if (isOutdated(domain, store.get(key), getVmi(key))) {', 'if (isOutdated(domain, undefined, undefined)) {'],
    by('handler-restart', 'v1.3'),
  ),
  mutant(
    'handler',
    'what the periodic question tells is not kept',
    'handler/src/domain-watch/domain-watch.ts',
    ['if (domain !== undefined) store.upsert(domain);\n      else if (before', 'if (domain === undefined && before'],
    by('notify-loss', 'v1.4'),
  ),
  mutant(
    'handler',
    'a launcher that cannot tell its domain is taken for gone',
    'handler/src/domain-watch/domain-watch.ts',
    ['store.upsert(unknownDomain(record))', 'store.upsert(goneDomain(record, apiTime(now()), true))'],
    by('launcher-hangs', 'v1.2'),
  ),
  mutant(
    'handler',
    'the launcher is not pinged before it is told to end',
    'handler/src/launchers/launchers.ts',
    ['unwrap(await client.ping());', ''],
    by('kill', 'v1.0'),
  ),
  mutant(
    'handler',
    'old launchers are not told to let disks grow',
    'shared-proto/src/compat-rules/adapt.ts',
    ['const expands = mayBe(launcher, CONTENT_RULES.expandDisks.peers);', 'const expands = false;'],
    by('first-start', 'v1.8'),
  ),
  mutant(
    'handler',
    'new launchers are told about images all the same',
    'handler/src/launchers/launcher-eras.ts',
    ["result.error.code === 'Rpc') return 'served';", "result.error.code === 'Rpc') return undefined;"],
    by('container-disk', 'v1.9'),
  ),
  mutant(
    'handler',
    'the attachment of interfaces is not sent',
    'handler/src/vmi/sync-options.ts',
    ['interfaceDomainAttachment: domainAttachments(', 'PreallocatedVolumes: domainAttachments('],
    by('first-start', 'v1.1'),
  ),
  mutant(
    'handler',
    'a sync has the deadline of a question',
    'shared-proto/src/cmd/rpcs.ts',
    ['const LONG: RpcTimeout = { ms: 20_000 };', 'const LONG: RpcTimeout = { ms: 5_000 };'],
    by('first-start', 'v1.5'),
  ),
  mutant(
    'handler',
    'the authority is not localhost',
    'shared-proto/src/channel.ts',
    ["'grpc.default_authority': 'localhost'", "'grpc.default_authority': 'kubevirt'"],
    by('first-start', 'v1.6'),
  ),
  mutant(
    'handler',
    'an RPC that is not implemented is an error like any other',
    'shared-proto/src/call-errors.ts',
    ["[status.UNIMPLEMENTED]: 'Unimplemented',", ''],
    by('requests', 'v1.4'),
  ),
  mutant(
    'handler',
    'an answer with success=false counts as done',
    'shared-proto/src/cmd/client.ts',
    ['const outcome = outcomeOf(value);', 'const outcome = outcomeOf({});'],
    by('bad-requests', 'v1.5'),
  ),
  mutant(
    'handler',
    'a request goes out without the message options',
    'shared-proto/src/cmd/requests.ts',
    ['  completeOptions(rpc, message as OptionsHolder);', ''],
    by('requests', 'v1.6'),
  ),
  mutant(
    'handler',
    'a request goes out without the message vmi',
    'shared-proto/src/cmd/requests.ts',
    ['  completeVmi(message as VmiHolder);', ''],
    by('requests', 'v1.7'),
  ),
  mutant(
    'handler',
    'a domain that says that it is not marked counts as marked for a graceful shutdown',
    'handler/src/vmi/decide.ts',
    ['MarkedForGracefulShutdown === true', 'MarkedForGracefulShutdown !== undefined'],
    by('pod-end', 'v1.2'),
  ),
  mutant(
    'handler',
    'the mark for a graceful shutdown is not seen',
    'handler/src/vmi/decide.ts',
    ['MarkedForGracefulShutdown === true', 'MarkedForGracefulShutdown === false'],
    by('pod-end', 'v0.59'),
  ),
];

const OF_LAUNCHER: readonly ProductMutant[] = [
  mutant(
    'launcher',
    'a VMI of wrong types is refused in other words',
    'launcher/src/cmd-server/vmi-rpc.ts',
    [NO_VMI, 'no VMI in the request'],
    by('bad-requests', 'v1.0'),
  ),
  mutant(
    'launcher',
    'a missing VMI is refused in other words',
    'shared-proto/src/cmd/checks.ts',
    [NO_VMI, 'no VMI in the request'],
    by('bad-requests', 'v1.9'),
  ),
  mutant(
    'launcher',
    'missing migration options are refused in other words',
    'shared-proto/src/cmd/checks.ts',
    ["'migration options object not present in command server request'", "'no migration options'"],
    by('bad-requests', 'v1.4'),
  ),
  mutant(
    'launcher',
    'a VM that was never started is paused in other words',
    'launcher/src/domain/lifecycle.ts',
    ['Domain not found.', 'No domain.'],
    by('bad-requests', 'v1.3'),
  ),
  mutant(
    'launcher',
    'failures of Exec, GuestPing and GetVMStats come as answers',
    'shared-proto/src/cmd/server.ts',
    ["['Exec', 'GuestPing', 'GetVMStats']", '[]'],
    by('bad-requests', 'v1.6'),
  ),
  mutant(
    'launcher',
    'bytes that are no message get another code',
    'shared-proto/src/cmd/server.ts',
    ['new StatusError(status.INTERNAL, UNMARSHAL_TEXT)', 'new StatusError(status.UNKNOWN, UNMARSHAL_TEXT)'],
    by('bad-requests', 'v1.7'),
  ),
  mutant(
    'launcher',
    'a network that the handler says nothing about gets no tap',
    'launcher/src/cmd-server/complete-options.ts',
    ["attachments[nic.name] = 'tap';", 'void nic;'],
    by('first-start', 'v1.0'),
  ),
  mutant(
    'launcher',
    'the end of a migration is not told as handlers before v1.6 know it',
    'launcher/src/domain/wire-domain.ts',
    ['{ ...migration, Completed: true }', 'migration'],
    by('migration-source', 'v1.5'),
  ),
  mutant(
    'launcher',
    'a user agent tells nothing about a handler',
    'launcher/src/domain/wire-domain.ts',
    ['...erasOfUserAgent(userAgent)', '...erasOfUserAgent(undefined)'],
    by('acpi-tables', 'v1.2'),
  ),
  mutant(
    'launcher',
    'the options of a sync tell nothing about a handler',
    'launcher/src/domain/wire-domain.ts',
    ['of erasOfOptions(options)) shown', 'of [] as Era[]) shown'],
    by('acpi-tables', 'v1.5'),
  ),
  mutant(
    'launcher',
    'events go on over a broken connection without a version check',
    'shared-proto/src/notify/sender.ts',
    ['if (!result.ok && !isRefusal(result.error)) this.#dropClient();', ''],
    by('notify-loss', 'v1.2'),
  ),
  mutant(
    'launcher',
    'a definition is told as MODIFIED',
    'launcher/src/events/decide-event.ts',
    [
      "lifecycle.detail === LIFECYCLE_DETAIL.definedAdded) return 'ADDED'",
      "lifecycle.detail === LIFECYCLE_DETAIL.definedAdded) return 'MODIFIED'",
    ],
    by('first-start', 'v1.4'),
  ),
  mutant(
    'launcher',
    'the arrival of a migration is told as MODIFIED',
    'launcher/src/events/decide-event.ts',
    [
      "lifecycle.detail === LIFECYCLE_DETAIL.startedMigrated) return 'ADDED'",
      "lifecycle.detail === LIFECYCLE_DETAIL.startedMigrated) return 'MODIFIED'",
    ],
    by('migration-target', 'v1.9'),
  ),
  mutant(
    'launcher',
    'the last event lacks the mark of deletion',
    'launcher/src/events/decide-event.ts',
    ['...(isGone ? { deletionTimestamp: renderTime(nowMs) } : {}),', ''],
    by('kill', 'v1.8'),
  ),
  mutant(
    'launcher',
    'a failed disk is told under another reason',
    'launcher/src/events/io-errors.ts',
    ["reason: 'IOerror'", "reason: 'DiskError'"],
    by('status', 'v1.2'),
  ),
  mutant(
    'launcher',
    'finalizing a migration fails when it is repeated',
    'launcher/src/migration/finalize.ts',
    ['deps.guestTime.start(domain);', "throw new LauncherError('MigrationFailed', 'no');"],
    by('migration-target', 'v1.4'),
  ),
  mutant(
    'launcher',
    'a VM is marked for a graceful shutdown from its start on',
    'launcher/src/domain/sync.ts',
    [
      'gracePeriod.update((grace) => ({ ...grace,',
      'gracePeriod.update((grace) => ({ ...grace, MarkedForGracefulShutdown: true,',
    ],
    by('pod-end', 'v1.6'),
  ),
  mutant(
    'launcher',
    'the end of a pod marks nothing',
    'launcher/src/monitor/node-shutdown.ts',
    ['MarkedForGracefulShutdown: true', ''],
    by('pod-end', 'v1.0'),
  ),
  mutant(
    'launcher',
    'all statistics lack those of the domain',
    'launcher/src/cmd-server/vm-stats.ts',
    ['if (request.domainStats !== undefined) parts', 'if (request.domainStats === undefined) parts'],
    by('requests', 'v1.9'),
  ),
  mutant(
    'launcher',
    'an item of the statistics is asked of the agent by the command of another',
    'launcher/src/agent/raw-data.ts',
    ["'guest-get-disks'", "'guest-get-diskstats'"],
    by('requests', 'v1.9'),
  ),
  mutant(
    'launcher',
    'a part of the statistics that fails does not show in the whole',
    'launcher/src/cmd-server/vm-stats.ts',
    ['failures.length === 0 ? undefined', 'failures.length < 99 ? undefined'],
    by('requests', 'v1.9'),
  ),
  mutant(
    'launcher',
    "libvirt's errors come in the form of Go's binding",
    'launcher/src/cmd-server/wire-error.ts',
    ['LibvirtError(Code=${', 'virError(Code=${'],
    by('bad-requests', 'v1.1'),
  ),
  mutant(
    'launcher',
    'a Kubernetes event is about an object of another API version',
    'launcher/src/events/k8s-event.ts',
    ["'kubevirt.io/v1'", "'kubevirt.io/v1alpha3'"],
    by('status', 'v1.7'),
  ),
  mutant(
    'launcher',
    'a disk without room is told as one that failed',
    'launcher/src/events/io-errors.ts',
    ['if (error === UNSPECIFIED)', 'if (error !== NONE)'],
    by('status', 'v0.59'),
  ),
];

/** Every fault of the product, each with the cell that kills it. */
export const PRODUCT_MUTANTS: readonly ProductMutant[] = [...OF_HANDLER, ...OF_LAUNCHER];
