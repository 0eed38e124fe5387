import { connectLauncher } from '@virtwire/handler/testing';
import type { FakeCall } from '@virtwire/handler/testing';
import { cmdV1 } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { parseVmiJson } from '@virtwire/vm-model';
import type { TraceEntry } from './case.ts';

const WITHOUT_VMI: ReadonlySet<string> = new Set(['Ping', 'GetGuestInfo', 'GetDomain']);

/** A request in the form of a case's trace, with the VMI whole. */
export function rpcEntry({ rpc, request }: FakeCall): TraceEntry {
  if (WITHOUT_VMI.has(rpc)) return { kind: 'rpc', rpc };
  if (rpc === 'VirtualMachineMemoryDump') {
    const { vmi, dumpPath } = cmdV1.MemoryDumpRequest.decode(request);
    return { kind: 'rpc', rpc, dumpPath, vmi: vmiOf(vmi) };
  }
  const { vmi, options } = cmdV1.VMIRequest.decode(request);
  return { kind: 'rpc', rpc, options: plain(options ?? {}), vmi: vmiOf(vmi) };
}

/** A message as protobuf prints it in JSON, default values included. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Map) return plain(Object.fromEntries(value));
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => key !== '_unknownFields');
  const camel = (key: string): string => key.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  return Object.fromEntries(entries.map(([key, inner]) => [camel(key), plain(inner)]));
}

function vmiOf(vmi: cmdV1.VMI | undefined): unknown {
  return vmi === undefined ? undefined : parseVmiJson(Buffer.from(vmi.vmiJson).toString('utf8'));
}

/** Connects for real; a connection that got as far as the version check is noted as `Info`. */
export function connectRecorded(note: (entry: TraceEntry) => void) {
  return async (socketFile: string, signal?: AbortSignal): Promise<CmdClient> => {
    try {
      const client = await connectLauncher(socketFile, signal);
      note({ kind: 'rpc', rpc: 'Info' });
      return client;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'VersionMismatch') {
        note({ kind: 'rpc', rpc: 'Info' });
      }
      throw error;
    }
  };
}
