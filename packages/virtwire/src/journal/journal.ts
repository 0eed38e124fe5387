import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { hasCode, VirtwireError } from '../errors.ts';
import type { JournalEntry, Resource } from './resource.ts';

interface JournalLine extends JournalEntry {
  readonly op: 'made' | 'gone';
}

/**
 * What this node has made on the machine, written before it is made: after a `kill -9` the next start finds and removes
 * all of it. One writer at a time; the node's lock sees to that.
 */
export interface Journal {
  /** Notes a resource that is about to be made. Noting it twice is the same as once. */
  record(owner: string, resource: Resource): void;
  /** Notes that a resource is gone. */
  forget(entry: JournalEntry): void;
  /** Entries in the order in which they were made; of one owner, or all. */
  entries(owner?: string): readonly JournalEntry[];
}

const keyOf = (entry: JournalEntry): string => `${entry.owner} ${JSON.stringify(entry.resource)}`;

/** Reads journal text; a last line that a crash cut off is ignored. */
function parseJournal(text: string): JournalEntry[] {
  const open = new Map<string, JournalEntry>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    let parsed: JournalLine;
    try {
      parsed = JSON.parse(line) as JournalLine;
    } catch {
      continue;
    }
    const entry = { owner: parsed.owner, resource: parsed.resource };
    if (parsed.op === 'made') open.set(keyOf(entry), entry);
    else open.delete(keyOf(entry));
  }
  return [...open.values()];
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return '';
    throw VirtwireError.from(caught, 'BadState', `cannot read the journal ${file}`);
  }
}

/** Opens the journal file, and shortens it to what is still there. */
export function openJournal(file: string): Journal {
  const open = new Map(parseJournal(readIfThere(file)).map((entry) => [keyOf(entry), entry]));
  mkdirSync(dirname(file), { recursive: true });
  const lineOf = (op: JournalLine['op'], entry: JournalEntry): string => `${JSON.stringify({ op, ...entry })}\n`;
  writeFileSync(`${file}.new`, [...open.values()].map((entry) => lineOf('made', entry)).join(''));
  renameSync(`${file}.new`, file);
  return {
    record(owner, resource) {
      const entry = { owner, resource };
      if (open.has(keyOf(entry))) return;
      appendFileSync(file, lineOf('made', entry));
      open.set(keyOf(entry), entry);
    },
    forget(entry) {
      if (!open.delete(keyOf(entry))) return;
      if (open.size === 0) rmSync(file, { force: true });
      else appendFileSync(file, lineOf('gone', entry));
    },
    entries(owner) {
      const all = [...open.values()];
      return owner === undefined ? all : all.filter((entry) => entry.owner === owner);
    },
  };
}
