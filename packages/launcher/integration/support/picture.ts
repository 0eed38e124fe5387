import { crc32, inflateSync } from 'node:zlib';

/** A picture of a screen, as far as tests look at it. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** One byte each for red, green and blue of every pixel, row by row. */
  readonly rgb: Buffer;
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** Reads a picture in one of the formats that libvirt gives: PPM up to libvirt 9 or so, PNG. */
export function decodePicture(bytes: Uint8Array): Picture {
  const data = Buffer.from(bytes);
  return data.subarray(0, 8).equals(PNG_SIGNATURE) ? decodePng(data) : decodePpm(data);
}

function decodePpm(data: Buffer): Picture {
  const header = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(data.subarray(0, 64).toString('latin1'));
  if (header === null) throw new Error('no PPM');
  const [width, height] = [Number(header[1]), Number(header[2])];
  const rgb = data.subarray(header[0].length);
  if (rgb.length !== width * height * 3) throw new Error(`${rgb.length} bytes for ${width}x${height}`);
  return { width, height, rgb };
}

function* chunksOf(data: Buffer): Generator<{ readonly type: string; readonly content: Buffer }> {
  for (let at = PNG_SIGNATURE.length; at < data.length;) {
    const length = data.readUInt32BE(at);
    const content = data.subarray(at + 8, at + 8 + length);
    const checked = data.subarray(at + 4, at + 8 + length);
    if (crc32(checked) !== data.readUInt32BE(at + 8 + length)) throw new Error('PNG chunk with a wrong checksum');
    yield { type: checked.subarray(0, 4).toString('latin1'), content };
    at += 12 + length;
  }
}

function decodePng(data: Buffer): Picture {
  const chunks = [...chunksOf(data)];
  const header = chunks.find(({ type }) => type === 'IHDR')?.content;
  if (header === undefined || chunks.at(-1)?.type !== 'IEND') throw new Error('incomplete PNG');
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (depth !== 8 || colour !== 2) throw new Error(`PNG of depth ${String(depth)} and colour type ${String(colour)}`);
  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ content }) => content));
  return { width, height, rgb: unfilter(inflateSync(packed), width * 3, height) };
}

/** Undoes the filters of the rows. */
function unfilter(rows: Buffer, rowBytes: number, height: number): Buffer {
  const rgb = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (rowBytes + 1)] ?? 0;
    for (let x = 0; x < rowBytes; x++) {
      const left = x < 3 ? 0 : (rgb[y * rowBytes + x - 3] ?? 0);
      const up = y === 0 ? 0 : (rgb[(y - 1) * rowBytes + x] ?? 0);
      const corner = x < 3 || y === 0 ? 0 : (rgb[(y - 1) * rowBytes + x - 3] ?? 0);
      const raw = rows[y * (rowBytes + 1) + 1 + x] ?? 0;
      rgb[y * rowBytes + x] = raw + predict(filter, left, up, corner);
    }
  }
  return rgb;
}

function predict(filter: number, left: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  const guess = left + up - corner;
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}
