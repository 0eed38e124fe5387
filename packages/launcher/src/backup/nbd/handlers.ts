import type { MapRequest, MapResponse, NbdHandlers, ReadRequest } from '@virtwire/shared-proto/nbd';
import { LauncherError } from '../../errors.ts';
import type { NbdExport } from './client.ts';
import { openNbdExport } from './client.ts';
import { ALLOCATION, dirtyContext, ExtentBatcher, mergeRuns } from './extents.ts';
import type { ExportExtent } from './extents.ts';
import { nbdError } from './protocol.ts';
import type { StatusRun } from './protocol.ts';

const MAX_CHUNK_BYTES = 256 * 1024;

/** Where a request ends. @throws {LauncherError} `BackupFailed` when it begins beyond the end. */
function endOf({ offset, length }: { readonly offset: bigint; readonly length: bigint }, size: bigint): bigint {
  if (offset >= size) throw new LauncherError('BackupFailed', `offset ${offset} is beyond export size ${size}`);
  return length === 0n || offset + length > size ? size : offset + length;
}

function answerOf(extents: readonly ExportExtent[]): MapResponse {
  const last = extents.at(-1);
  return { extents: [...extents], next_offset: last === undefined ? 0n : last.offset + last.length };
}

function runsOf(status: ReadonlyMap<string, readonly StatusRun[]>, bitmap: string): readonly StatusRun[] {
  const allocation = status.get(ALLOCATION) ?? [];
  return bitmap === '' ? allocation : mergeRuns(allocation, status.get(dirtyContext(bitmap)) ?? []);
}

async function* map(source: NbdExport, request: MapRequest): AsyncGenerator<MapResponse> {
  const end = endOf(request, source.size);
  const batcher = new ExtentBatcher(request.offset, end, request.bitmap_name !== '');
  while (batcher.offset < end) {
    const before = batcher.offset;
    const runs = runsOf(await source.blockStatus(before, end - before), request.bitmap_name);
    for (const extents of batcher.add(runs)) yield answerOf(extents);
    if (batcher.offset === before) throw nbdError(`no forward progress at offset ${before}`);
  }
  for (const extents of batcher.finish()) yield answerOf(extents);
}

/**
 * Answers an export server with what an NBD server on a socket shows; each call has a connection of its own.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/nbd_client.go
 */
export function createNbdHandlers(socketPath: string): NbdHandlers {
  return {
    async *map(request, signal) {
      const { export_name: name, bitmap_name: bitmap } = request;
      const contexts = bitmap === '' ? [ALLOCATION] : [ALLOCATION, dirtyContext(bitmap)];
      using source = await openNbdExport(socketPath, name, contexts, signal);
      yield* map(source, request);
    },
    async *read(request: ReadRequest, signal) {
      using source = await openNbdExport(socketPath, request.export_name, [], signal);
      const end = endOf(request, source.size);
      for (let offset = request.offset; offset < end; offset += BigInt(MAX_CHUNK_BYTES)) {
        const left = end - offset;
        const length = left < MAX_CHUNK_BYTES ? Number(left) : MAX_CHUNK_BYTES;
        yield { offset, data: await source.read(offset, length) };
      }
    },
  };
}
