import { dirname } from 'node:path';
import type { Capture, RecordedMessage } from './captures.ts';
import { codecOf, documentsIn } from './documents.ts';
import type { Flaw } from './recordings.ts';

/** A text and where it stands. */
interface PlacedText {
  readonly place: string;
  readonly text: string;
}

/** By place, and for items of lists by what else they hold. */
type Texts = Map<string, PlacedText>;

/** A text of a call of a scenario. */
interface Occurrence extends PlacedText {
  readonly path: string;
}

const MAX_DEPTH = 32;
/** More different characters than these are another text, not a damaged one. */
const MAX_CHARACTERS = 2;
const DIGITS = /^\d+$/;
const DOCUMENT = /^[[{]/;

/**
 * Texts that differ in a character or two from the same text of the calls before and after, and stand so nowhere else in
 * their scenario: names, paths and words of a VM do not change for one call alone. What counts or measures differs in
 * digits, and is left alone.
 */
export function misprintProblems(captures: readonly Capture[]): readonly Flaw[] {
  const scenarios = Map.groupBy(captures, ({ path }) => dirname(path));
  return [...scenarios.values()].flatMap((scenario) => {
    const places = new Map<string, Occurrence[]>();
    for (const capture of scenario) {
      for (const [key, placed] of textsOf(capture)) {
        const occurrences = places.get(key) ?? [];
        occurrences.push({ path: capture.path, ...placed });
        places.set(key, occurrences);
      }
    }
    return [...places.values()].flatMap(misprintsOf);
  });
}

function misprintsOf(occurrences: readonly Occurrence[]): readonly Flaw[] {
  const counts = new Map<string, number>();
  for (const { text } of occurrences) counts.set(text, (counts.get(text) ?? 0) + 1);
  return occurrences.flatMap(({ path, place, text }, i) => {
    const [before, after] = [occurrences[i - 1]?.text, occurrences[i + 1]?.text];
    if (before === undefined || before !== after || counts.get(text) !== 1 || !isMisprint(text, before)) return [];
    const problem = `${place} is ${JSON.stringify(text)}, and ${JSON.stringify(before)} in the calls before and after`;
    return [{ path, problem }];
  });
}

function isMisprint(text: string, usual: string): boolean {
  if (text.length !== usual.length) return false;
  const different: string[] = [];
  for (let i = 0; i < text.length; i++) if (text[i] !== usual[i]) different.push(`${text[i] ?? ''}${usual[i] ?? ''}`);
  const isCount = different.every((pair) => DIGITS.test(pair));
  return different.length > 0 && different.length <= MAX_CHARACTERS && !isCount;
}

/** Every text of a call: in its metadata, its messages, and the JSON within them. */
function textsOf({ method, requestMetadata = {}, request, response }: Capture): Texts {
  const texts: Texts = new Map();
  for (const [key, [value]] of Object.entries(requestMetadata)) collect(value, `the header ${key}`, 0, texts);
  for (const message of [request, response]) if (message !== undefined) collectMessage(message, method, texts);
  return texts;
}

/** JSON within messages is the same thing in all of them; other fields belong to their method. */
function collectMessage({ type, base64 }: RecordedMessage, method: string, into: Texts): void {
  try {
    const message = codecOf(type)?.decode(Buffer.from(base64, 'base64'));
    if (message === undefined) return;
    collect(message, method.slice(method.lastIndexOf('/') + 1), 0, into);
    for (const { field, text } of documentsIn(message, type)) collect(readJson(text), field, 0, into);
  } catch {
    // What cannot be decoded is told of the bytes.
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function collect(value: unknown, place: string, depth: number, into: Texts): void {
  // Documents are read on their own.
  if (typeof value === 'string' && !DOCUMENT.test(value)) into.set(place, { place, text: value });
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || depth > MAX_DEPTH) return;
  if (Array.isArray(value)) {
    collectItems(value, place, depth, into);
    return;
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  for (const [key, item] of entries) collect(item, `${place}.${String(key)}`, depth + 1, into);
}

/** Items of a list come and go: one is the same as before when all its other texts are. */
function collectItems(items: readonly unknown[], place: string, depth: number, into: Texts): void {
  for (const [index, item] of items.entries()) {
    const texts: Texts = new Map();
    collect(item, `${place}.${index}`, depth + 1, texts);
    const all = [...texts].map(([key, { text }]) => hash(key + text)).reduce((a, b) => a ^ b, 0);
    for (const [key, placed] of texts) into.set(`${key} ${all ^ hash(key + placed.text)}`, placed);
  }
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value;
}
