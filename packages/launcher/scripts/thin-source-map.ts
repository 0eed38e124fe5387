const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** A source map of version 3, as far as it is touched here. */
export interface SourceMap {
  readonly version: number;
  readonly sources: readonly string[];
  readonly names: readonly string[];
  readonly mappings: string;
}

interface Segment {
  readonly column: number;
  readonly source: number;
  readonly line: number;
  readonly sourceColumn: number;
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

function encodeNumber(number: number): string {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = '';
  do {
    const digit = rest & 31;
    rest >>>= 5;
    text += DIGITS[rest > 0 ? digit | 32 : digit] ?? '';
  } while (rest > 0);
  return text;
}

/** First segment of each generated line that comes from a wanted source. */
function firstSegments(map: SourceMap, isWanted: (source: string) => boolean): (Segment | undefined)[] {
  let source = 0;
  let line = 0;
  let sourceColumn = 0;
  return map.mappings.split(';').map((text) => {
    let column = 0;
    let first: Segment | undefined;
    for (const segment of text.split(',').filter(Boolean)) {
      const [columnStep = 0, sourceStep, lineStep = 0, sourceColumnStep = 0] = decodeNumbers(segment);
      column += columnStep;
      if (sourceStep === undefined) continue;
      source += sourceStep;
      line += lineStep;
      sourceColumn += sourceColumnStep;
      if (first === undefined && isWanted(map.sources[source] ?? '')) first = { column, source, line, sourceColumn };
    }
    return first;
  });
}

/**
 * The map with one entry per line, and none for the sources that nobody asks about. A whole map costs a running node
 * 24 MiB for this program, which only ever asks for the line of a log call.
 */
export function thinSourceMap(map: SourceMap, isWanted: (source: string) => boolean): SourceMap {
  let last: Segment = { column: 0, source: 0, line: 0, sourceColumn: 0 };
  const mappings = firstSegments(map, isWanted).map((segment) => {
    if (segment === undefined) return '';
    const steps = [
      segment.column,
      segment.source - last.source,
      segment.line - last.line,
      segment.sourceColumn - last.sourceColumn,
    ];
    last = segment;
    return steps.map(encodeNumber).join('');
  });
  return { ...map, names: [], mappings: mappings.join(';').replace(/;+$/, '') };
}
