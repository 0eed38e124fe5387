import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CMD_RPC_NAMES, CMD_RPCS, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import { maskRequest, maskResponse } from './mask.ts';
import { MessageReader } from '../replay/recorded-json.ts';
import { startRelay } from './relay.ts';
import type { Relay, RelayedCall } from './relay.ts';

/** What a recording is about. */
export interface RecordOptions {
  readonly listen: string;
  readonly to: string;
  readonly out: string;
  /** The release that is recorded, for the index. */
  readonly release: string;
}

/** A recorder that runs; disposing of it writes the index. */
export interface Recorder extends AsyncDisposable {
  readonly messages: number;
}

const MAX_MESSAGES = 100_000;
const NAMES: Readonly<Record<number, string>> = {
  ...{ 0: 'OK', 1: 'Canceled', 2: 'Unknown', 4: 'DeadlineExceeded', 8: 'ResourceExhausted' },
  ...{ 12: 'Unimplemented', 13: 'Internal', 14: 'Unavailable' },
};

interface Types {
  readonly request: string;
  readonly response: string;
}

const isCmdRpc = (name: string): name is CmdRpc => (CMD_RPC_NAMES as readonly string[]).includes(name);

function nameOf(codec: object): string {
  const [name = ''] = Object.entries(cmdV1).find(([, candidate]) => candidate === codec) ?? [];
  return `kubevirt.cmd.v1.${name}`;
}

function cmdTypes(rpc: CmdRpc): Types {
  const { request, response } = CMD_RPCS[rpc];
  return { request: nameOf(request), response: nameOf(response) };
}

/** Types of the messages of a method; undefined for one that no release has. */
function typesOf(path: string): Types | undefined {
  const [, service = '', rpc = ''] = path.split('/');
  if (service === 'kubevirt.cmd.v1.Cmd') return isCmdRpc(rpc) ? cmdTypes(rpc) : undefined;
  if (service === 'kubevirt.cmd.info.CmdInfo') {
    return { request: 'kubevirt.cmd.info.CmdInfoRequest', response: 'kubevirt.cmd.info.CmdInfoResponse' };
  }
  if (service === 'kubevirt.notify.info.NotifyInfo') {
    return { request: 'kubevirt.notify.info.NotifyInfoRequest', response: 'kubevirt.notify.info.NotifyInfoResponse' };
  }
  if (service !== 'kubevirt.notify.v1.Notify') return undefined;
  const request = rpc === 'HandleDomainEvent' ? 'DomainEventRequest' : 'K8sEventRequest';
  return { request: `kubevirt.notify.v1.${request}`, response: 'kubevirt.notify.v1.Response' };
}

/** What every message of a recording is rendered with. */
interface Recording {
  readonly startedAtMs: number;
  readonly release: string;
  readonly reader: MessageReader;
}

const side = (reader: MessageReader, type: string, bytes: Uint8Array): object => ({
  type,
  base64: Buffer.from(bytes).toString('base64'),
  ...reader.show(type, bytes),
});

function render(seq: number, relayed: RelayedCall, { startedAtMs, release, reader }: Recording): object | undefined {
  const { call, answer, atMs, durationMs } = relayed;
  const types = typesOf(call.path);
  if (types === undefined) return undefined;
  const channel = call.path.startsWith('/kubevirt.notify') ? 'notify' : 'cmd';
  return {
    ...{ seq, release, scenario: 'recorded', channel, caller: channel === 'cmd' ? 'handler' : 'launcher' },
    ...{ method: call.path, atMs: Math.round(atMs - startedAtMs), durationMs: Math.round(durationMs) },
    requestMetadata: { ':authority': [call.authority] },
    request: side(reader, types.request, maskRequest(call.path, call.request)),
    ...(answer.code === 0 ? { response: side(reader, types.response, maskResponse(call.path, answer.bytes)) } : {}),
    grpcStatus: { code: answer.code, message: answer.details, name: NAMES[answer.code] ?? String(answer.code) },
  };
}

/**
 * Stands between a live handler and a live launcher and writes what they say in the format of KubeVirt captures, with
 * secrets masked. Works on a cmd socket and on a notify socket alike.
 *
 * @throws {CompatError} `ServeFailed`.
 */
export async function startRecorder({ listen, to, out, release }: RecordOptions): Promise<Recorder> {
  mkdirSync(out, { recursive: true });
  const recording: Recording = { startedAtMs: performance.now(), release, reader: new MessageReader() };
  const files: string[] = [];
  const onCall = (relayed: RelayedCall): void => {
    if (files.length >= MAX_MESSAGES) return;
    const seq = files.length + 1;
    const message = render(seq, relayed, recording);
    if (message === undefined) return;
    const rpc = relayed.call.path.slice(relayed.call.path.lastIndexOf('/') + 1);
    const prefix = relayed.call.path.startsWith('/kubevirt.notify') ? 'notify-' : '';
    const file = `${String(seq).padStart(3, '0')}-${prefix}${rpc}.json`;
    files.push(file);
    writeFileSync(join(out, file), `${JSON.stringify(message, null, 1)}\n`, { mode: 0o600 });
  };
  const relay: Relay = await startRelay(listen, to, { onCall });
  return {
    get messages() {
      return files.length;
    },
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      const index = { release, scenario: 'recorded', messages: files.map((file) => ({ file })) };
      writeFileSync(join(out, 'index.json'), `${JSON.stringify(index, null, 1)}\n`, { mode: 0o600 });
    },
  };
}
