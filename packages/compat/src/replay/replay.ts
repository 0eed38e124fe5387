import { cmdV1 } from '@virtwire/shared-proto';
import { MessageReader } from './recorded-json.ts';
import type { Capture, Recordings } from './captures.ts';
import { clientCheck, handlerCheck, launcherCheck } from './answers.ts';
import type { AnswerCheck } from './answers.ts';
import { codecProblem, sampleProblem } from './codec.ts';

/** gRPC status of a server that could not decode a request. */
const UNDECODABLE = 13;

/** Something recorded that our side takes differently. */
export interface ReplayProblem {
  readonly path: string;
  readonly problem: string;
}

/** What came of a replay. */
export interface ReplayResult {
  readonly messages: number;
  readonly samples: number;
  /** Calls that our launcher answered, answers that our client read, events that our handler took. */
  readonly answers: number;
  readonly problems: readonly ReplayProblem[];
}

/** Whether the recorded peer took a request as a message with good JSON. */
function wasTaken({ response }: Capture): boolean {
  if (response === undefined) return false;
  if (!response.type.endsWith('.Response')) return true;
  try {
    return cmdV1.Response.decode(Buffer.from(response.base64, 'base64')).success;
  } catch {
    return false;
  }
}

/** Why the bytes of a call are not what its file says they are; a record without such JSON says nothing. */
function recordProblems({ method, request, response }: Capture, reader: MessageReader): readonly string[] {
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

function codecProblemsOf(capture: Capture): readonly string[] {
  const { request, response, grpcStatus } = capture;
  const bad = codecProblem(request, wasTaken(capture));
  // What the recorded peer could not decode is bad for us as well.
  if (grpcStatus.code === UNDECODABLE) return bad === undefined ? ['a request is decoded that its peer could not'] : [];
  return [bad, response === undefined ? undefined : codecProblem(response, true)].filter((text) => text !== undefined);
}

function codecProblems(captures: readonly Capture[]): readonly ReplayProblem[] {
  const reader = new MessageReader();
  return captures.flatMap((capture) => {
    const problems = [...recordProblems(capture, reader), ...codecProblemsOf(capture)];
    return problems.map((problem) => ({ path: capture.path, problem }));
  });
}

async function answerProblems(
  captures: readonly Capture[],
  open: () => Promise<AnswerCheck>,
): Promise<readonly ReplayProblem[]> {
  if (captures.length === 0) return [];
  await using check = await open();
  const problems: ReplayProblem[] = [];
  for (const capture of captures) {
    const problem = await check.problem(capture).catch((error: unknown) => String(error));
    if (problem !== undefined) problems.push({ path: capture.path, problem });
  }
  return problems;
}

/**
 * Plays recorded traffic against our side: every message has to decode and come back equal when it is encoded, and
 * every call has to get an answer that is equivalent to the recorded one.
 */
export async function replay({ captures, samples }: Recordings): Promise<ReplayResult> {
  const cmd = captures.filter(({ channel }) => channel === 'cmd');
  const notify = captures.filter(({ channel }) => channel === 'notify');
  const problems = [
    ...codecProblems(captures),
    ...samples.flatMap((sample) => {
      const problem = sampleProblem(sample);
      return problem === undefined ? [] : [{ path: sample.path, problem }];
    }),
    ...(await answerProblems(cmd, launcherCheck)),
    ...(await answerProblems(cmd, clientCheck)),
    ...(await answerProblems(notify, handlerCheck)),
  ];
  const answers = 2 * cmd.length + notify.length;
  return { messages: captures.length, samples: samples.length, answers, problems };
}
