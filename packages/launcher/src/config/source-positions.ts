import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

type Places = Readonly<Record<string, string | undefined>>;

function readPlaces(file: string): Places {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Places;
  } catch {
    return {};
  }
}

/**
 * Names of places in the sources for those in a bundle, as the file beside the bundle says (`<bundle>.places.json`). Without
 * that file, as when the sources themselves run, places only lose their column.
 *
 * @param program path of the file that runs.
 * @returns maps `file:line:column` to `file.ts:line`.
 */
export function sourcePositions(program: string): (place: string) => string {
  const prefix = `${basename(program)}:`;
  let places: Places | undefined;
  return (place) => {
    const withoutColumn = place.replace(/:\d+$/, '');
    if (!place.startsWith(prefix)) return withoutColumn;
    places ??= readPlaces(`${program}.places.json`);
    return places[place.slice(prefix.length)] ?? withoutColumn;
  };
}
