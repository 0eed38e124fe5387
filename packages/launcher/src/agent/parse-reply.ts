import { parseJson } from '@virtwire/vm-model';
import type { AgentCommand, AgentFacts, AgentFilesystem, AgentNumber } from './types.ts';

/** Longest reply that is looked at. Real ones have kilobytes; libvirt itself stops at 10 MiB. */
export const MAX_REPLY_CHARS = 8 * 1024 * 1024;
/** Most entries kept of any list that a guest sends. */
export const MAX_ENTRIES = 10_000;
const MAX_TEXT_CHARS = 64 * 1024;

/**
 * The `return` member of an agent's reply; undefined when the text is no JSON object, is too long or has none.
 * Integers beyond a double's precision come as bigint.
 */
export function parseReturn(reply: string): unknown {
  if (reply.length > MAX_REPLY_CHARS) return undefined;
  try {
    const value = parseJson(reply);
    return typeof value === 'object' && value !== null && 'return' in value ? value.return : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ENTRIES) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARS) : '';
}

function integerOf(value: unknown): AgentNumber {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : 0;
}

function parseCommand(value: unknown): AgentCommand | undefined {
  const fields = fieldsOf(value);
  return fields === undefined ? undefined : { name: textOf(fields['name']), enabled: fields['enabled'] === true };
}

function parseFilesystem(value: unknown): AgentFilesystem | undefined {
  const fields = fieldsOf(value);
  if (fields === undefined) return undefined;
  const disks = listOf(fields['disk'])
    .map(fieldsOf)
    .filter((disk) => disk !== undefined);
  return {
    name: textOf(fields['name']),
    mountpoint: textOf(fields['mountpoint']),
    type: textOf(fields['type']),
    usedBytes: integerOf(fields['used-bytes']),
    totalBytes: integerOf(fields['total-bytes']),
    disks: disks.map((disk) => ({ serial: textOf(disk['serial']), busType: textOf(disk['bus-type']) })),
  };
}

/**
 * What a reply to `guest-info` tells; undefined when it is of another shape.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_parser.go
 */
export function parseGuestInfoReply(reply: string): AgentFacts | undefined {
  const fields = fieldsOf(parseReturn(reply));
  if (fields === undefined) return undefined;
  const commands = listOf(fields['supported_commands']).map(parseCommand);
  return { version: textOf(fields['version']), supportedCommands: commands.filter((c) => c !== undefined) };
}

/** What a reply to `guest-get-fsinfo` tells; undefined when it is of another shape. */
export function parseFsInfoReply(reply: string): AgentFacts | undefined {
  const list = parseReturn(reply);
  if (!Array.isArray(list)) return undefined;
  return {
    filesystems: listOf(list)
      .map(parseFilesystem)
      .filter((fs) => fs !== undefined),
  };
}

/** What a reply to `guest-fsfreeze-status` tells; undefined when it is of another shape. */
export function parseFsFreezeReply(reply: string): AgentFacts | undefined {
  const status = parseReturn(reply);
  return typeof status === 'string' ? { fsFreezeStatus: textOf(status) } : undefined;
}
