/** What the commands of this package get from the process that they run in. */
export interface CompatProcess {
  /** A line of standard output. */
  line(text: string): void;
  /** A line of standard error. */
  error(text: string): void;
  readonly input: NodeJS.ReadableStream;
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
  readonly env: NodeJS.ProcessEnv;
}

/** The process's own. */
export function compatProcess(): CompatProcess {
  return {
    line: (text) => void process.stdout.write(`${text}\n`),
    error: (text) => void process.stderr.write(`${text}\n`),
    input: process.stdin,
    signals: process,
    env: process.env,
  };
}
