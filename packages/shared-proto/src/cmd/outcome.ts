import type { Response } from '../gen/kubevirt/cmd/v1/cmd.ts';

/**
 * Finds the Response in an answer: the answer itself, or its field 1.
 *
 * @returns undefined if the field is absent, which counts as success.
 */
export function outcomeOf(answer: object): Response | undefined {
  if ('success' in answer) return answer as Response;
  return 'response' in answer ? (answer.response as Response | undefined) : undefined;
}
