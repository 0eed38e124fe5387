import { CMD_RPC_NAMES, cmdV1, connectNotify } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import { factsOf } from '../emulate/lines/lines.ts';
import { openReleaseSchema } from '../emulate/schema/release-schema.ts';
import { dialGrpc } from '../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../emulate/transport/grpc-client.ts';
import { CompatError } from '../errors.ts';
import type { ReleaseLine } from '../release-line.ts';
import { RELEASE_LINES } from '../release-line.ts';

/** What a live peer does with one RPC. */
export interface Finding {
  readonly rpc: string;
  readonly verdict: 'supported' | 'deviates' | 'missing' | 'not asked';
  readonly detail: string;
}

/** What a probe found out. */
export interface ProbeResult {
  readonly findings: readonly Finding[];
  /** Release lines whose RPC set the peer has, as far as it was asked; empty for a set that no release has. */
  readonly lines: readonly ReleaseLine[];
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
const CALL_LIMIT_MS = 10_000;
const UNIMPLEMENTED = 12;
const HABIT = { authority: 'localhost', userAgent: 'virtwire-probe' };

/** RPCs that only ask. */
const HARMLESS: readonly CmdRpc[] = [
  ...(['Ping', 'GetDomain', 'GetDomainStats', 'GetGuestInfo', 'GetUsers', 'GetFilesystems', 'GetQemuVersion'] as const),
  ...(['GetSEVInfo', 'GetVMStats'] as const),
];

/** RPCs whose empty VMI every launcher refuses before it does anything: even so they are asked with `unsafe` only. */
const isHarmless = (rpc: string): boolean => (HARMLESS as readonly string[]).includes(rpc);

/**
 * A request that a launcher of any release survives and refuses: `vmi` present and empty, `options` present where a
 * launcher written in Go would crash without them.
 */
function refusedRequest(rpc: CmdRpc): Uint8Array {
  if (rpc === 'Exec') {
    return cmdV1.ExecRequest.encode(
      cmdV1.ExecRequest.fromPartial({ domainName: 'no_such_domain', Command: 'true', timeoutSeconds: 1 }),
    ).finish();
  }
  if (rpc === 'GuestPing') {
    return cmdV1.GuestPingRequest.encode(
      cmdV1.GuestPingRequest.fromPartial({ domainName: 'no_such_domain', timeoutSeconds: 1 }),
    ).finish();
  }
  // Field 1 is the VMI in every request that has one.
  return Buffer.from('0a00', 'hex');
}

function judge(rpc: string, answer: RawAnswer): Finding {
  const { code, details, bytes } = answer;
  if (code === UNIMPLEMENTED) return { rpc, verdict: 'missing', detail: details };
  const mayBeStatus = ['Exec', 'GuestPing', 'GetVMStats'].includes(rpc);
  if (code === 0) {
    const what = isHarmless(rpc) ? `${bytes.length} bytes` : 'refused as it should';
    if (isHarmless(rpc)) return { rpc, verdict: 'supported', detail: what };
    const { success } = cmdV1.Response.decode(firstResponse(rpc, bytes));
    const isOdd = success && !mayBeStatus;
    return isOdd
      ? { rpc, verdict: 'deviates', detail: 'accepted a request without a VMI' }
      : { rpc, verdict: 'supported', detail: what };
  }
  if (code === 2 && mayBeStatus) return { rpc, verdict: 'supported', detail: details };
  return { rpc, verdict: 'deviates', detail: `answered gRPC code ${code}: ${details}` };
}

/** The Response of an answer: the answer itself, or its field 1. */
function firstResponse(rpc: string, bytes: Uint8Array): Uint8Array {
  const wrapped: readonly string[] = ['GetLaunchMeasurement', 'GetScreenshot', 'RedefineCheckpoint'];
  if (!wrapped.includes(rpc)) return bytes;
  return cmdV1.Response.encode(cmdV1.DomainResponse.decode(bytes).response ?? { success: true, message: '' }).finish();
}

async function askAll(connection: GrpcConnection, isUnsafe: boolean): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const rpc of CMD_RPC_NAMES) {
    if (!isHarmless(rpc) && !isUnsafe) {
      findings.push({ rpc, verdict: 'not asked', detail: 'asked with --unsafe only' });
      continue;
    }
    const request = isHarmless(rpc) ? new Uint8Array() : refusedRequest(rpc);
    findings.push(judge(rpc, await connection.call(CMD + rpc, request, CALL_LIMIT_MS)));
  }
  const unknown = await connection.call(`${CMD}NoSuchMethod`, new Uint8Array(), CALL_LIMIT_MS);
  findings.push(
    unknown.code === UNIMPLEMENTED
      ? { rpc: '(unknown method)', verdict: 'supported', detail: 'refused as not implemented' }
      : { rpc: '(unknown method)', verdict: 'deviates', detail: `answered gRPC code ${unknown.code}` },
  );
  return findings;
}

function fits(line: ReleaseLine, findings: readonly Finding[]): boolean {
  const { cmdRpcs } = openReleaseSchema(factsOf(line).release.value);
  return findings.every(({ rpc, verdict }) => {
    if (verdict === 'not asked' || rpc.startsWith('(')) return true;
    return cmdRpcs.has(rpc) === (verdict !== 'missing');
  });
}

async function dial(socket: string): Promise<GrpcConnection> {
  try {
    return await dialGrpc(socket, HABIT);
  } catch (caught) {
    const text = `nobody answers at ${socket} within 2 s: is the process that serves it still there?`;
    throw new CompatError('ConnectFailed', text, { cause: caught });
  }
}

async function checkInfo(connection: GrpcConnection, path: string): Promise<Finding> {
  const { code, details, bytes } = await connection.call(path, new Uint8Array(), CALL_LIMIT_MS);
  if (code !== 0) return { rpc: 'Info', verdict: 'deviates', detail: `answered gRPC code ${code}: ${details}` };
  const hex = Buffer.from(bytes).toString('hex');
  if (hex === '0a0101') return { rpc: 'Info', verdict: 'supported', detail: 'version 1' };
  return { rpc: 'Info', verdict: 'deviates', detail: `offers other versions than 1: ${hex}` };
}

/**
 * Plays a handler towards a live launcher and asks for every RPC.
 *
 * Without `isUnsafe` nothing is sent that could change a VM. With it, every other RPC is called with a VMI that launchers
 * of all releases refuse.
 *
 * @throws {CompatError} `ConnectFailed`.
 */
export async function probeLauncher(socket: string, isUnsafe: boolean): Promise<ProbeResult> {
  using connection = await dial(socket);
  const info = await checkInfo(connection, '/kubevirt.cmd.info.CmdInfo/Info');
  const findings = [info, ...(await askAll(connection, isUnsafe))];
  return { findings, lines: RELEASE_LINES.filter((line) => fits(line, findings.slice(1))) };
}

async function askNotify(socket: string, isUnsafe: boolean): Promise<readonly Finding[]> {
  using client = await connectNotify(socket);
  const empty = await client.handleDomainEvent({ eventType: 'PROBE' });
  const domain: Finding = {
    rpc: 'HandleDomainEvent',
    verdict: empty.ok || empty.error.code === 'Failed' ? 'supported' : 'deviates',
    detail: empty.ok ? 'an event of an unknown type is dropped' : empty.error.message,
  };
  if (!isUnsafe) return [domain, { rpc: 'HandleK8sEvent', verdict: 'not asked', detail: 'asked with --unsafe only' }];
  const event = await client.handleK8sEvent({ eventJSON: Buffer.from('{"involvedObject":') });
  const isRefused = !event.ok && event.error.code === 'Failed';
  return [
    domain,
    {
      rpc: 'HandleK8sEvent',
      verdict: isRefused ? 'supported' : 'deviates',
      detail: event.ok ? 'took an event that is no JSON' : event.error.message,
    },
  ];
}

/** Plays a launcher towards a live notify server. @throws {CompatError} `ConnectFailed`. */
export async function probeNotifyServer(socket: string, isUnsafe: boolean): Promise<ProbeResult> {
  using connection = await dial(socket);
  const info = await checkInfo(connection, '/kubevirt.notify.info.NotifyInfo/Info');
  try {
    const findings = [info, ...(await askNotify(socket, isUnsafe))];
    return { findings, lines: RELEASE_LINES };
  } catch (caught) {
    throw new CompatError('ConnectFailed', `${socket}: ${String(caught)}`, { cause: caught });
  }
}
