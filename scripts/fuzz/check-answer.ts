import { CMD_RPCS, type CmdRpc } from '@virtwire/shared-proto';
import type { RawAnswer } from './raw-client.ts';

/** Numbers of gRPC. */
const [OK, UNKNOWN, INTERNAL] = [0, 2, 13];
/** RPCs that tell their failures by a gRPC status. */
const BY_STATUS: ReadonlySet<string> = new Set(['Exec', 'GuestPing', 'GetVMStats']);
/** What a program says when it has tripped, and never a launcher that has understood. */
const TRIPPED =
  /Cannot (read|set|convert|destructure|mix)|is not (a function|iterable|an object|defined)|Maximum call|Invalid array length|\[object |TypeError|RangeError/;

/** What is wrong with a launcher's answer; undefined when it has the documented form. */
export function faultOfCmdAnswer(rpc: CmdRpc, answer: RawAnswer): string | undefined {
  const told = (text: string): string => `${rpc} answered ${text}`;
  if (answer.status === INTERNAL && answer.text.startsWith('grpc: error unmarshalling request')) return undefined;
  if (answer.status === UNKNOWN && BY_STATUS.has(rpc)) return faultOfText(answer.text, told);
  if (answer.status !== OK) return told(`with status ${String(answer.status)}: ${answer.text}`);
  const message = CMD_RPCS[rpc].response.decode(answer.message) as { response?: unknown };
  const { success, message: text } = (message.response ?? message) as { success?: boolean; message?: string };
  return success === false ? faultOfText(text ?? '', told) : undefined;
}

function faultOfText(text: string, told: (text: string) => string): string | undefined {
  if (text === '') return told('with a failure without a word');
  return TRIPPED.test(text) ? told(text) : undefined;
}
