import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDomainStore, createEventHandlers, createNotifyGate } from '@virtwire/handler/testing';
import { startLauncherOnFake } from '@virtwire/launcher/testing';
import { CMD_RPC_NAMES, CMD_RPCS, serveCmd, unwrap } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import { faultOfCmdAnswer } from './check-answer.ts';
import type { Corpus } from './corpus.ts';
import { hostileRequest } from './hostile-request.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';
import { connectRaw, type RawAnswer, type RawClient } from './raw-client.ts';
import type { Target } from './target.ts';

const NOTIFY = '/kubevirt.notify.v1.Notify/';
const INFO = '/kubevirt.cmd.info.CmdInfo/Info';
const CALLS_AT_ONCE = 32;
/** One call in so many starts the VM again, which others may have ended. */
const STARTS_EVERY = 12;
const UID = 'f0000000-0000-4000-8000-000000000001';

/** A server that takes calls. */
interface Attacked extends AsyncDisposable {
  readonly socket: string;
  /** Rejects when the server has ended, which it never should. */
  readonly ended?: Promise<never>;
}

interface Call {
  readonly path: string;
  readonly message: Buffer;
  /** What is wrong with the answer, if anything. */
  readonly faultOf?: (answer: RawAnswer) => string | undefined;
}

function temporary(): { readonly socket: string; readonly directory: string; readonly remove: () => void } {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-fuzz-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  return { directory, socket: join(directory, 'sock'), remove };
}

/** A whole launcher whose VM runs, on libvirt in memory; half of the inputs are bytes, half messages that can be read. */
export async function openCmdServer(corpus: Corpus): Promise<Target> {
  const podNetwork = { readLinks: () => ({ links: [], addresses: [] }), startServers: () => Promise.resolve([]) };
  const launcher = await startLauncherOnFake([], {}, {}, { isRecorded: false, podNetwork });
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  launcher.daemon.domain(launcher.domainName).connectAgent();
  const all = [...corpus.requests.values()].flat();
  const vmis = [launcher.vmi, ...corpus.vmis.map((bytes) => parseVmiJson(bytes.toString()))].map(
    (vmi) => JSON.parse(renderVmiJson({ ...vmi, metadata: launcher.vmi.metadata })) as object,
  );
  const own = vmis.slice(0, 1);
  const { domainName } = launcher;
  const good = CMD_RPCS.SyncVirtualMachine.request.fromPartial(launcher.request);
  const start = Buffer.from(CMD_RPCS.SyncVirtualMachine.request.encode(good).finish());
  const choose = (random: Random): Call => {
    const isStart = random.below(STARTS_EVERY) === 0;
    const rpc = isStart ? 'SyncVirtualMachine' : random.pick(CMD_RPC_NAMES);
    const path = `/kubevirt.cmd.v1.Cmd/${rpc}`;
    const recorded = corpus.requests.get(path) ?? [];
    const parts = { vmis: random.below(2) === 0 ? own : vmis, domainName, recorded };
    const hostile =
      random.below(2) === 0
        ? hostileRequest(rpc, parts, random)
        : mutate(random.pick(recorded.length === 0 ? all : recorded), random.pick(all), random);
    return { path, message: isStart ? start : hostile, faultOf: (answer) => faultOfCmdAnswer(rpc, answer) };
  };
  const ended = launcher.ended.then(() => {
    throw new Error('the launcher has ended');
  });
  const server = {
    socket: join(launcher.root, 'share/sockets/launcher-sock'),
    ended,
    [Symbol.asyncDispose]: () => launcher[Symbol.asyncDispose](),
  };
  return attack(server, choose, '/kubevirt.cmd.v1.Cmd/Ping');
}

/** The handler's notify server, as peers that dial the node's socket meet it. */
export async function openNotifyServer(corpus: Corpus): Promise<Target> {
  const { directory, remove } = temporary();
  const log = createLogger('virt-handler', { destination: { write: () => undefined } });
  const events = { event: () => undefined };
  const vmi = parseVmiJson(JSON.stringify({ metadata: { name: 'vm1', namespace: 'ns1', uid: UID }, spec: {} }));
  const handlers = createEventHandlers({ store: createDomainStore(), getVmi: () => vmi, events, log });
  const node = { kind: 'Node', namespace: '', name: 'node', uid: '' };
  const gate = createNotifyGate({ handlers, events, node, now: Date.now, log }, directory);
  await gate.start();
  const server = {
    socket: join(directory, 'domain-notify.sock'),
    ended: gate.failed,
    async [Symbol.asyncDispose]() {
      await gate[Symbol.asyncDispose]();
      remove();
    },
  };
  const paths = [`${NOTIFY}HandleDomainEvent`, `${NOTIFY}HandleK8sEvent`];
  return attack(server, mutated(corpus, paths), '/kubevirt.notify.info.NotifyInfo/Info');
}

/** The info service alone, and names that nobody serves. */
export async function openInfo(corpus: Corpus): Promise<Target> {
  const { socket, remove } = temporary();
  const server = await serveCmd(socket, {});
  const attacked = {
    socket,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      remove();
    },
  };
  return attack(attacked, mutated(corpus, [INFO, '/kubevirt.cmd.info.CmdInfo/Nothing', '/nothing']), INFO);
}

function mutated(corpus: Corpus, paths: readonly string[]): (random: Random) => Call {
  const all = [...corpus.requests.values()].flat();
  return (random) => {
    const path = random.pick(paths);
    return { path, message: mutate(random.pick(corpus.requests.get(path) ?? all), random.pick(all), random) };
  };
}

/** Calls a server with what no client would send, many calls at once; at the end it has to answer a good one. */
function attack(server: Attacked, choose: (random: Random) => Call, witness: string): Target {
  const client: RawClient = connectRaw(server.socket);
  const running = new Set<Promise<void>>();
  let failure: unknown;
  const fail = (caught: unknown): void => void (failure ??= caught);
  server.ended?.catch(fail);
  const check = ({ faultOf }: Call, answer: RawAnswer): void => {
    if (answer.status === undefined) fail(new Error('a call has ended without a status'));
    const fault = faultOf?.(answer);
    if (fault !== undefined) fail(new Error(fault));
  };
  return {
    feed: async (random) => {
      const next = choose(random);
      const call = client.call(next.path, next.message).then((answer) => check(next, answer), fail);
      const tracked = call.catch(fail).finally(() => running.delete(tracked));
      running.add(tracked);
      if (running.size >= CALLS_AT_ONCE) await Promise.race(running);
      if (failure !== undefined) throw failure as Error;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(running);
      const { status } = await client.call(witness, Buffer.alloc(0));
      if (status !== 0) fail(new Error(`${witness} answers with status ${String(status)} in the end`));
      const found = failure;
      client[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
      if (found !== undefined) throw found as Error;
    },
  };
}
