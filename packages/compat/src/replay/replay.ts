import type { Capture } from './captures.ts';
import { clientCheck, handlerCheck, launcherCheck } from './answers.ts';
import type { AnswerCheck } from './answers.ts';
import { sampleProblem } from './codec.ts';
import { connectionProblems } from './connections.ts';
import { recordProblems } from './records.ts';
import type { Recordings } from './recordings.ts';

/** Something recorded that our side takes differently. */
export interface ReplayProblem {
  readonly path: string;
  readonly problem: string;
}

/** What came of a replay. */
export interface ReplayResult {
  readonly messages: number;
  readonly samples: number;
  readonly connections: number;
  /** Calls that our launcher answered, answers that our client read, events that our handler took. */
  readonly answers: number;
  readonly problems: readonly ReplayProblem[];
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
 * Plays recorded traffic against our side: every message has to decode and come back equal when it is encoded,
 * connections have to hold the recorded calls, and every call has to get an answer that is equivalent to the recorded one.
 */
export async function replay(recordings: Recordings): Promise<ReplayResult> {
  const { captures, samples, connections, flaws } = recordings;
  const cmd = captures.filter(({ channel }) => channel === 'cmd');
  const notify = captures.filter(({ channel }) => channel === 'notify');
  const problems = [
    ...flaws,
    ...recordProblems(captures),
    ...connectionProblems(recordings),
    ...samples.flatMap((sample) => {
      const problem = sampleProblem(sample);
      return problem === undefined ? [] : [{ path: sample.path, problem }];
    }),
    ...(await answerProblems(cmd, launcherCheck)),
    ...(await answerProblems(cmd, clientCheck)),
    ...(await answerProblems(notify, handlerCheck)),
  ];
  const answers = 2 * cmd.length + notify.length;
  return { messages: captures.length, samples: samples.length, connections: connections.length, answers, problems };
}
