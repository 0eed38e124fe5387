import { COMMANDS } from './commands.ts';
import { renderCommandHelp, renderHelp } from './help.ts';
import type { CompatProcess } from './process.ts';

const isHelp = (word: string): boolean => word === '--help' || word === '-h';

/** Words behind `--` belong to somebody else. */
const asksForHelp = (words: readonly string[]): boolean => {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? words.length : end).some(isHelp);
};

/** What went wrong, without the hints that Node adds for programmers. */
const reasonOf = (caught: unknown): string => {
  const text = caught instanceof Error ? caught.message : String(caught);
  const isParseError = caught instanceof Error && 'code' in caught && String(caught.code).startsWith('ERR_PARSE_ARGS');
  return isParseError ? (text.split('\n')[0] ?? text) : text;
};

function runHelp(words: readonly string[], io: CompatProcess): number {
  const [name] = words;
  if (name === undefined) return finishHelp(io, 0);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return unknownCommand(name, io);
  io.line(renderCommandHelp(command));
  return 0;
}

function finishHelp(io: CompatProcess, code: number): number {
  io.line(renderHelp(COMMANDS));
  return code;
}

function unknownCommand(name: string, io: CompatProcess): number {
  io.error(`virtwire compat: unknown command ${name}: one of ${Object.keys(COMMANDS).join(', ')}`);
  return 2;
}

/**
 * Runs `virtwire compat …`.
 *
 * @param argv the words after `compat`.
 * @returns the exit code: 0 for fine, 1 for a finding, 2 when it could not be checked: wrong usage, bad input, nobody there.
 */
export async function runCompat(argv: readonly string[], io: CompatProcess): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined) return finishHelp(io, 2);
  if (isHelp(name)) return finishHelp(io, 0);
  if (name === 'help') return runHelp(rest, io);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return unknownCommand(name, io);
  if (asksForHelp(rest)) return runHelp([name], io);
  try {
    return await command.run(rest, io);
  } catch (caught) {
    io.error(`virtwire compat ${name}: ${reasonOf(caught)}`);
    return 2;
  }
}
