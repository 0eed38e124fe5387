/**
 * A launcher without a hypervisor, as a process of its own in its own mount namespace: it speaks the real wire, starts
 * at most one "domain", and does what its standard input says. One JSON object per line, both ways.
 */
import { createInterface } from 'node:readline';
import { createNotifySender, cmdV1 } from '@virtwire/shared-proto';
import { emptyDomain, parseVmiJson, renderDomainJson } from '@virtwire/vm-model';
import type { Domain } from '@virtwire/vm-model';
import type { CmdRpc } from '@virtwire/shared-proto';
import { startFakeLauncher } from '../../src/testing/index.ts';
import type { FakeAnswer } from '../../src/testing/index.ts';

const [socketPath = ''] = process.argv.slice(2);
const PIPE = '/run/kubevirt/domain-notify-pipe.sock';

interface Command {
  readonly answer?: { readonly rpc: CmdRpc; readonly with: FakeAnswer };
  readonly status?: string;
  readonly reason?: string;
  readonly agent?: boolean;
  readonly freeze?: boolean;
  readonly foreign?: { readonly name: string; readonly uid: string };
  readonly event?: { readonly reason: string; readonly message: string };
}

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const sender = createNotifySender(PIPE, { retryIntervalMs: 100 });
let domain: Domain | undefined;
let starts = 0;

async function send(sent: Domain): Promise<void> {
  const result = await sender.sendDomainEvent({
    domainJSON: Buffer.from(renderDomainJson(sent)),
    eventType: 'MODIFIED',
  });
  say({ event: sent.Status.Status, ok: result.ok, ...(result.ok ? {} : { error: result.error.message }) });
}

function change(status: Domain['Status']['Status'], reason: Domain['Status']['Reason']): void {
  if (domain === undefined) return;
  domain.Status = { ...domain.Status, Status: status, Reason: reason };
  launcher.domain = renderDomainJson(domain);
  void send(structuredClone(domain));
}

function start(request: Uint8Array): void {
  const json = cmdV1.VMIRequest.decode(request).vmi?.vmiJson ?? new Uint8Array();
  const vmi = parseVmiJson(Buffer.from(json).toString('utf8'));
  if (domain !== undefined) return;
  const { namespace, name, uid } = vmi.metadata;
  starts += 1;
  say({ started: starts });
  domain = emptyDomain();
  domain.ObjectMeta = { namespace, name, uid };
  domain.Spec.Name = `${namespace}_${name}`;
  domain.Spec.Features = { ACPI: {} };
  domain.Spec.OS.Type = { OS: 'hvm', Arch: 'x86_64', Machine: 'pc-q35-7.2' };
  domain.Spec.Metadata.KubeVirt = { UID: uid, GracePeriod: { DeletionGracePeriodSeconds: 30 } };
  domain.Spec.Devices.Interfaces = (vmi.spec.domain.devices.interfaces ?? []).map((iface) => ({
    Alias: { Name: iface.name },
    MAC: { MAC: '02:00:00:00:00:01' },
  }));
  change('Running', 'Unknown');
}

function stopWith(status: Domain['Status']['Status'], reason: Domain['Status']['Reason']): void {
  change(status, reason);
}

const launcher = await startFakeLauncher(socketPath, ({ rpc, request }) => {
  say({ rpc });
  if (rpc === 'SyncVirtualMachine') start(request);
  if (rpc === 'KillVirtualMachine') stopWith('Shutoff', 'Destroyed');
  if (rpc === 'ShutdownVirtualMachine' && domain !== undefined) {
    const grace = domain.Spec.Metadata.KubeVirt.GracePeriod;
    if (grace !== undefined) grace.DeletionTimestamp ??= `${new Date().toISOString().slice(0, 19)}Z`;
    change(domain.Status.Status, domain.Status.Reason);
  }
  if (rpc === 'DeleteVirtualMachine') {
    domain = undefined;
    launcher.domain = '';
  }
});

function connectAgent(): void {
  if (domain === undefined) return;
  domain.Spec.Devices.Channels = [{ Target: { Name: 'org.qemu.guest_agent.0', State: 'connected', Type: 'virtio' } }];
  domain.Status.OSInfo = { Name: 'Debian GNU/Linux', Version: '12', Id: 'debian' };
  domain.Status.Interfaces = [{ Mac: '02:00:00:00:00:01', InterfaceName: 'eth0', Ip: '10.0.2.2', IPs: ['10.0.2.2'] }];
  change('Running', 'Unknown');
}

async function sendForeign({ name, uid }: { readonly name: string; readonly uid: string }): Promise<void> {
  const other = emptyDomain();
  other.ObjectMeta = { namespace: 'default', name, uid };
  other.Spec.Metadata.KubeVirt.UID = uid;
  other.Status.Status = 'Crashed';
  await send(other);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line) as Command;
  if (command.answer !== undefined) launcher.answer(command.answer.rpc, command.answer.with);
  if (command.status !== undefined) {
    stopWith(command.status as Domain['Status']['Status'], (command.reason ?? 'Unknown') as Domain['Status']['Reason']);
  }
  if (command.agent === true) connectAgent();
  if (command.foreign !== undefined) void sendForeign(command.foreign);
  // A launcher that hangs takes connections, but its event loop stands still.
  if (command.freeze === true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
say({ ready: true });
