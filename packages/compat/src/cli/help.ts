import type { CompatCommand } from './commands.ts';

const COLUMN = 32;

const EXITS = 'Exit codes: 0 fine, 1 a break, deviation or failure was found, 2 could not check';

/** What `virtwire compat --help` prints. */
export function renderHelp(commands: Readonly<Record<string, CompatCommand>>): string {
  const list = Object.values(commands).map(({ usage, summary }) => `  ${usage}\n      ${summary}`);
  return `Usage: virtwire compat COMMAND

Checks handlers and launchers of KubeVirt against those of every release from v0.59 to v1.9.

${list.join('\n')}

virtwire compat COMMAND --help tells of one command.
${EXITS}`;
}

/** What `virtwire compat COMMAND --help` prints. */
export function renderCommandHelp({ usage, summary, details, options, exits }: CompatCommand): string {
  const list = options.map(([option, meaning]) => `  ${option.padEnd(COLUMN)}${meaning}`);
  const lines = [
    `Usage: virtwire compat ${usage}`,
    '',
    `${summary[0]?.toUpperCase() ?? ''}${summary.slice(1)}.`,
    ...details,
    ...(list.length === 0 ? [] : ['', ...list]),
    '',
    `Exit codes: 0 ${exits.fine}; 1 ${exits.finding}; 2 could not check`,
  ];
  return lines.join('\n');
}
