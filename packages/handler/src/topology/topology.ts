import type { cmdV1 } from '@virtwire/shared-proto';
import { SaxesParser } from 'saxes';
import { HandlerError } from '../errors.ts';

type Cell = cmdV1.Cell;
type Attributes = Readonly<Record<string, string>>;

/** Sibling lists are split at commas; pieces that are no number, such as ranges, are left out. */
function siblings(list: string | undefined): number[] {
  return (list ?? '')
    .split(',')
    .filter((piece) => /^\d+$/.test(piece))
    .map(Number);
}

function emptyCell(id: number): Cell {
  return { id, memory: undefined, pages: [], distances: [], cpus: [] };
}

/** Takes in one element of the host's topology; `text` is its content. */
function addTo(cell: Cell, name: string, attributes: Attributes, text: string): void {
  if (name === 'memory') {
    cell.memory = { amount: BigInt(text), unit: attributes['unit'] ?? '' };
  } else if (name === 'pages') {
    cell.pages.push({
      count: BigInt(text),
      unit: attributes['unit'] ?? '',
      size: Number(attributes['size'] ?? 0),
    });
  } else if (name === 'sibling') {
    cell.distances.push({ id: Number(attributes['id'] ?? 0), value: BigInt(attributes['value'] ?? 0) });
  } else if (name === 'cpu') {
    cell.cpus.push({ id: Number(attributes['id'] ?? 0), siblings: siblings(attributes['siblings']) });
  }
}

/**
 * NUMA cells of the node from libvirt's capabilities, as launchers expect them.
 *
 * @throws {HandlerError} `Invalid` when the text is no XML or holds a number that is none.
 * @source KubeVirt v1.9.0 pkg/virt-handler/options.go (capabilitiesToTopology)
 */
export function parseTopology(capabilitiesXml: string): { readonly numa_cells: Cell[] } {
  const cells: Cell[] = [];
  const open: { readonly name: string; readonly attributes: Attributes; text: string }[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => {
    open.push({ name, attributes, text: '' });
    if (name === 'cell') cells.push(emptyCell(Number(attributes['id'] ?? 0)));
  });
  parser.on('text', (text) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += text;
  });
  parser.on('closetag', () => {
    const element = open.pop();
    const cell = cells.at(-1);
    const isInCell = open.some(({ name }) => name === 'cell');
    if (element !== undefined && cell !== undefined && isInCell) {
      addTo(cell, element.name, element.attributes, element.text.trim());
    }
  });
  try {
    parser.write(capabilitiesXml).close();
  } catch (error) {
    throw HandlerError.from(error, 'Invalid', 'cannot read the capabilities of the node');
  }
  return { numa_cells: cells };
}
