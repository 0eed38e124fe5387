import type { Capture } from './captures.ts';
import { dirname } from 'node:path';
import { type AnswerCheck, clientCheck, handlerCheck, launcherVerdicts } from './answers.ts';
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
  /** Answers of our launcher and handler that were compared, and recorded answers that our client read. */
  readonly answers: number;
  /** Answers that nobody can compare, or that differ as they have to, by reason. */
  readonly open: Readonly<Record<string, number>>;
  /** Folders of calls without an index: whether all that were recorded are there, nobody knows. */
  readonly selections: readonly string[];
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

/** Plays every scenario against a launcher of its own. */
async function launcherResult(
  captures: readonly Capture[],
): Promise<{ readonly problems: readonly ReplayProblem[]; readonly open: Readonly<Record<string, number>> }> {
  const scenarios = Map.groupBy(captures, ({ path }) => dirname(path));
  const problems: ReplayProblem[] = [];
  const open: Record<string, number> = {};
  for (const [folder, scenario] of scenarios) {
    if (scenario.every(({ channel }) => channel !== 'cmd')) continue;
    try {
      for (const [{ path }, verdict] of await launcherVerdicts(scenario)) {
        if (verdict.kind === 'different') problems.push({ path, problem: verdict.problem });
        if (verdict.kind === 'open') open[verdict.reason] = (open[verdict.reason] ?? 0) + 1;
      }
    } catch (caught) {
      problems.push({ path: folder, problem: `it cannot be played: ${String(caught)}` });
    }
  }
  return { problems, open };
}

/**
 * Plays recorded traffic against our side: every message has to decode and come back equal when it is encoded,
 * connections have to hold the recorded calls, and every call has to get an answer that is equivalent to the recorded one.
 */
export async function replay(recordings: Recordings): Promise<ReplayResult> {
  const { captures, samples, connections, flaws, selections } = recordings;
  const cmd = captures.filter(({ channel }) => channel === 'cmd');
  const notify = captures.filter(({ channel }) => channel === 'notify');
  const launcher = await launcherResult(captures);
  const problems = [
    ...flaws,
    ...recordProblems(captures),
    ...connectionProblems(recordings),
    ...samples.flatMap((sample) => {
      const problem = sampleProblem(sample);
      return problem === undefined ? [] : [{ path: sample.path, problem }];
    }),
    ...launcher.problems,
    ...(await answerProblems(cmd, clientCheck)),
    ...(await answerProblems(notify, handlerCheck)),
  ];
  const openCount = Object.values(launcher.open).reduce((sum, count) => sum + count, 0);
  return {
    ...{ messages: captures.length, samples: samples.length, connections: connections.length },
    ...{ answers: 2 * cmd.length + notify.length - openCount, open: launcher.open, selections, problems },
  };
}
