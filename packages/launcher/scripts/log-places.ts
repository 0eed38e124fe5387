const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** Calls that write a log line, or name the place for a later one; V8 counts the place of a call from the name. */
const LOG_CALL = /(?<=\.)(?:trace|debug|info|warn|error|fatal)\(|\bstartSpan\d*\(/g;

/** A source map of version 3, as far as it is read here. */
export interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

interface Segment {
  readonly column: number;
  readonly source: string;
  /** Counted from 1. */
  readonly line: number;
}

function decodeNumbers(text: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const char of text) {
    const digit = DIGITS.indexOf(char);
    value |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    numbers.push((value & 1) === 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

/** The mapped parts of each generated line, in their order. */
function segmentsOf(map: SourceMap): Segment[][] {
  let source = 0;
  let line = 0;
  return map.mappings.split(';').map((text) => {
    let column = 0;
    return text
      .split(',')
      .filter(Boolean)
      .flatMap((segment) => {
        const [columnStep = 0, sourceStep, lineStep = 0] = decodeNumbers(segment);
        column += columnStep;
        if (sourceStep === undefined) return [];
        source += sourceStep;
        line += lineStep;
        return [{ column, source: map.sources[source] ?? '', line: line + 1 }];
      });
  });
}

/** The last part that begins at or before a column. */
function segmentAt(segments: readonly Segment[], column: number): Segment | undefined {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((segments[middle]?.column ?? Infinity) <= column) low = middle + 1;
    else high = middle;
  }
  return segments[low - 1];
}

/**
 * Places in the sources of the log calls of a bundle. That is all that a running launcher needs of a source map; with the
 * map itself node holds 7 MiB more and takes a third longer to start.
 *
 * @returns `file.ts:line` by `line:column` of the bundle, both counted from 1.
 */
export function logPlaces(bundle: string, map: SourceMap): Readonly<Record<string, string>> {
  const lines = segmentsOf(map);
  const places: Record<string, string> = {};
  for (const [index, text] of bundle.split('\n').entries()) {
    for (const { index: column } of text.matchAll(LOG_CALL)) {
      const segment = segmentAt(lines[index] ?? [], column);
      if (segment === undefined || segment.source.includes('node_modules')) continue;
      const file = segment.source.slice(segment.source.lastIndexOf('/') + 1);
      places[`${String(index + 1)}:${String(column + 1)}`] = `${file}:${String(segment.line)}`;
    }
  }
  return places;
}
