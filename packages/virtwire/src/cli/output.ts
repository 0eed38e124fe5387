/** Where a command writes: standard output and error, or a test's own. */
export interface Output {
  line(text: string): void;
  error(text: string): void;
  /** A text that is a document of its own: as it is into files and pipes, with a line end on a terminal. */
  document(text: string, to: 'output' | 'error'): void;
  /** Text as it is, for consoles; resolves when more can be taken. */
  raw(bytes: Uint8Array): Promise<void>;
}

/** The process's own output. */
export const standardOutput: Output = {
  line: (text) => void process.stdout.write(`${text}\n`),
  error: (text) => void process.stderr.write(`${text}\n`),
  document: (text, to) => {
    const stream = to === 'output' ? process.stdout : process.stderr;
    stream.write(stream.isTTY ? `${text}\n` : text);
  },
  raw: (bytes) => new Promise((resolve) => process.stdout.write(bytes, () => resolve())),
};

/** Rows below a header, columns as wide as they need. */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_name, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const cells = (row: readonly string[]): string =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('   ')
      .trimEnd();
  return all.map(cells).join('\n');
}

/** A span of time for people: `42s`, `5m12s`, `3h4m`, `2d5h`. */
export function renderAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours, days] = [seconds / 60, seconds / 3_600, seconds / 86_400].map(Math.floor) as [
    number,
    number,
    number,
  ];
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${minutes % 60}m`;
  if (minutes > 0) return `${minutes}m${seconds % 60}s`;
  return `${seconds}s`;
}
