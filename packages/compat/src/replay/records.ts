import { compareReleases, openHistory, type SchemaHistory } from '@virtwire/shared-proto/history';
import { cmdV1 } from '@virtwire/shared-proto';
import { authorityProblem } from './authority.ts';
import type { Capture } from './captures.ts';
import { codecProblem } from './codec.ts';
import { contractProblems } from './contract.ts';
import { misprintProblems } from './misprints.ts';
import { MessageReader } from './recorded-json.ts';
import type { Flaw } from './recordings.ts';
import { spellingProblems } from './spelling.ts';

/** gRPC status of a server that could not decode a request. */
const UNDECODABLE = 13;
const UNIMPLEMENTED = 12;
const NO_VMI = 'No valid vmi object present';

/** Whether the recorded peer took the JSON of a field of a request. */
function wasTaken(capture: Capture): (field: string) => boolean {
  const refusal = refusalOf(capture);
  // Whatever else it was refused for, its VMI was read before.
  return (field) => refusal === '' || (field === 'VMI.vmiJson' && refusal !== undefined && !refusal.startsWith(NO_VMI));
}

/** Why a call was refused; empty when it succeeded, undefined when nobody can say. */
function refusalOf({ response }: Capture): string | undefined {
  if (response === undefined) return undefined;
  try {
    const bytes = Buffer.from(response.base64, 'base64');
    const isPlain = response.type.endsWith('.Response');
    const answer = isPlain ? cmdV1.Response.decode(bytes) : cmdV1.DomainResponse.decode(bytes).response;
    return answer === undefined || answer.success ? '' : answer.message;
  } catch {
    return undefined;
  }
}

/** Why the bytes of a call are not what its file says they are; a record without such JSON says nothing. */
function shownProblems({ method, request, response }: Capture, reader: MessageReader): readonly string[] {
  const types = reader.typesOf(method);
  const sides = [
    { message: request, type: types?.request },
    { message: response, type: types?.response },
  ];
  return sides.flatMap(({ message, type }) => {
    if (message === undefined) return [];
    if (type !== undefined && type !== message.type) return [`a ${message.type} stands where ${type} belongs`];
    if (message.protobufJSON === undefined) return [];
    const shown = { protobufJSON: message.protobufJSON, embedded: message.embedded ?? {} };
    const found = reader.difference(message.type, Buffer.from(message.base64, 'base64'), shown);
    return found === undefined ? [] : [found];
  });
}

function codecProblems(capture: Capture, isNewer: boolean, reader: MessageReader): readonly string[] {
  const { method, request, response, grpcStatus } = capture;
  // Nobody looks into the request of a method that the server does not have.
  if (reader.typesOf(method) === undefined && grpcStatus.code === UNIMPLEMENTED) return [];
  const bad = codecProblem(request, { isWellFormed: wasTaken(capture), isNewer, isRequest: true }, reader);
  // What the recorded peer could not decode is bad for us as well.
  if (grpcStatus.code === UNDECODABLE) return bad === undefined ? ['a request is decoded that its peer could not'] : [];
  const answer = response && codecProblem(response, { isWellFormed: () => true, isNewer, isRequest: false }, reader);
  return [bad, answer].filter((text) => text !== undefined);
}

/** Whether the RPC is there as it has to be in the recorded release. */
function presenceProblem({ method, grpcStatus, release }: Capture, history: SchemaHistory): string | undefined {
  const isUnimplemented = grpcStatus.code === UNIMPLEMENTED;
  if (!history.releases.includes(release)) return undefined;
  const has = history.hasRpc(release, method);
  if (has && isUnimplemented) return `code 12, and ${release} has this RPC`;
  const isAnswered = !has && grpcStatus.code === 0;
  return isAnswered ? `it is answered, and ${release} does not have this RPC` : undefined;
}

/** What is wrong with recorded calls: bytes, types, JSON, and what no peer of their release does. */
export function recordProblems(captures: readonly Capture[]): readonly Flaw[] {
  const reader = new MessageReader();
  const history = openHistory();
  const newest = history.releases.at(-1) ?? '';
  const own = captures.flatMap((capture) => {
    const { release, requestMetadata, path } = capture;
    const isKnown = history.releases.includes(release);
    const isNewer = /^v\d/.test(release) && compareReleases(release, newest) > 0;
    const authority = requestMetadata?.[':authority']?.[0];
    const problems = [
      ...shownProblems(capture, reader),
      ...codecProblems(capture, isNewer, reader),
      ...contractProblems(capture),
      presenceProblem(capture, history),
      authority === undefined ? undefined : authorityProblem(authority, isKnown ? release : undefined),
    ];
    return problems.flatMap((problem) => (problem === undefined ? [] : [{ path, problem }]));
  });
  return [...own, ...spellingProblems(captures), ...misprintProblems(captures)];
}
