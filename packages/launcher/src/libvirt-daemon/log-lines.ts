import { StringDecoder } from 'node:string_decoder';

/** One line of a foreign log in KubeVirt's keys. */
export interface ForwardedLine {
  readonly level: string;
  readonly msg: string;
  readonly pos?: string;
  readonly timestamp: string;
  readonly thread?: string;
  readonly subcomponent: 'libvirt' | 'qemu';
}

const AGENT_NOISE = 'unable to execute QEMU agent command';
const MAX_FIELDS = 5;

function splitFields(line: string): string[] {
  const fields = line.split(': ');
  if (fields.length <= MAX_FIELDS) return fields;
  return [...fields.slice(0, MAX_FIELDS - 1), fields.slice(MAX_FIELDS - 1).join(': ')];
}

function renderTimestamp(text: string): string | undefined {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.(\d{3})\+0000$/.exec(text);
  return match === null ? undefined : `${match[1]}T${match[2]}.${match[3]}000Z`;
}

function severityOf(text: string): string {
  return text === 'debug' ? 'info' : text;
}

/**
 * A line of libvirt's standard error, `TIME: THREAD: SEVERITY: POS: MESSAGE`; undefined when it is not to be shown.
 *
 * @param now timestamp for a line that has none of its own.
 * @source KubeVirt v1.9.0 staging client-go log LogLibvirtLogLine
 */
export function parseLibvirtLine(line: string, verbosity: number, now: string): ForwardedLine | undefined {
  if (line.trim() === '') return undefined;
  const fields = splitFields(line);
  const timestamp = renderTimestamp(fields[0] ?? '');
  if (fields.length < 4 || timestamp === undefined) {
    return { level: 'info', msg: line, timestamp: now, subcomponent: 'libvirt' };
  }
  const thread = (fields[1] ?? '').trim();
  let level = severityOf((fields[2] ?? '').trim());
  const place = (fields[3] ?? '').trim();
  const hasPlace = /^\S+:\d+$/.test(place);
  const msg = (hasPlace ? fields.slice(4) : fields.slice(3)).join(': ').trim();
  if (msg.includes(AGENT_NOISE)) {
    if (verbosity < 4) return undefined;
    level = 'warning';
  }
  return { level, msg, ...(hasPlace ? { pos: place } : {}), timestamp, thread, subcomponent: 'libvirt' };
}

/** A forwarded line as JSON text, keys in the order in which Go prints them. */
export function renderForwarded(line: ForwardedLine): string {
  return JSON.stringify({
    component: 'virt-launcher',
    level: line.level,
    msg: line.msg,
    pos: line.pos,
    subcomponent: line.subcomponent,
    thread: line.thread,
    timestamp: line.timestamp,
  });
}

/** Splits a stream of bytes into lines; a line longer than the limit becomes several. */
export interface LineSplitter {
  push(chunk: Buffer): readonly string[];
  /** What is left when the stream has ended. */
  end(): readonly string[];
}

/** Longest line that is kept whole, in characters. */
export const MAX_LINE_BYTES = 512 * 1024;

/** Creates a splitter with nothing in it. */
export function createLineSplitter(): LineSplitter {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    push(chunk) {
      const lines = (rest + decoder.write(chunk)).split('\n');
      rest = lines.pop() ?? '';
      while (rest.length >= MAX_LINE_BYTES) {
        lines.push(rest.slice(0, MAX_LINE_BYTES));
        rest = rest.slice(MAX_LINE_BYTES);
      }
      return lines;
    },
    end() {
      const last = rest + decoder.end();
      rest = '';
      return last === '' ? [] : [last];
    },
  };
}

/** Joins lines that end in a backslash with the ones that follow them, as QEMU's command line is logged. */
export function joinContinued(lines: readonly string[]): readonly string[] {
  const joined: string[] = [];
  let open: string | undefined;
  for (const line of lines) {
    const whole = (open ?? '') + line;
    if (line.endsWith('\\') && whole.length < MAX_LINE_BYTES) open = whole;
    else {
      joined.push(whole);
      open = undefined;
    }
  }
  return open === undefined ? joined : [...joined, open];
}
