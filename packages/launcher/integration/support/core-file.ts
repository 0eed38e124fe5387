const CORE = 4;
const LOAD = 1;

/** A dump of a guest's memory. */
export interface CoreFile {
  /** Bytes of memory that it holds. */
  readonly memoryBytes: number;
  /** True when the text stands in the memory. */
  holds(text: string): boolean;
}

/** Reads a core in ELF's 64-bit form, as far as tests look at it. */
export function parseCore(file: Buffer): CoreFile {
  const isElf64 = file.readUInt32BE(0) === 0x7f454c46 && file[4] === 2;
  if (!isElf64 || file.readUInt16LE(16) !== CORE) throw new Error('no 64-bit ELF core');
  const [table, entryBytes, entries] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  const parts = Array.from({ length: entries }, (_, i) => file.subarray(table + i * entryBytes))
    .filter((entry) => entry.readUInt32LE(0) === LOAD)
    .map((entry) => {
      const [offset, bytes] = [Number(entry.readBigUInt64LE(8)), Number(entry.readBigUInt64LE(32))];
      if (offset + bytes > file.length) throw new Error('a part of the memory is missing');
      return file.subarray(offset, offset + bytes);
    });
  return {
    memoryBytes: parts.reduce((sum, { length }) => sum + length, 0),
    holds: (text) => parts.some((part) => part.includes(text)),
  };
}
