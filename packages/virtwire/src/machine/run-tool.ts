import { runTool as runHostTool } from '@virtwire/host';
import { hasCode, VirtwireError } from '../errors.ts';

/** How a tool is run. */
export interface ToolOptions {
  readonly input?: string;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default 30 s. */
  readonly timeoutMs?: number;
}

/** Runs a program with an argument array and returns its standard output. */
export type RunTool = (program: string, args: readonly string[], options?: ToolOptions) => Promise<string>;

const TIMEOUT_MS = 30_000;

/** Where administration tools lie; a plain user's PATH leaves out the sbin ones. */
export const TOOL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Runs one tool to its end.
 *
 * @throws {VirtwireError} `MissingTool` when it is not installed, `ToolFailed` with its last words otherwise.
 */
export const runTool: RunTool = async (program, args, options = {}) => {
  try {
    const result = await runHostTool(program, args, {
      stdin: options.input ?? '',
      env: { ...process.env, PATH: TOOL_PATH, LC_ALL: 'C', ...options.env },
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    });
    return result.stdout;
  } catch (caught) {
    if (hasCode(caught, 'ToolNotFound')) {
      throw new VirtwireError('MissingTool', `${program} is not installed: run scripts/setup.sh`, { cause: caught });
    }
    throw VirtwireError.from(caught, 'ToolFailed', `${program} failed`);
  }
};
