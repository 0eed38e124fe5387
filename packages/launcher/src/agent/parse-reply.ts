import { parseJson } from '@virtwire/vm-model';
import type { AgentCommand, AgentFacts, AgentFilesystem, AgentNumber } from './types.ts';

/** Longest reply that is looked at. Real ones have kilobytes; libvirt itself stops at 10 MiB. */
export const MAX_REPLY_CHARS = 8 * 1024 * 1024;
/** Most entries kept of any list that a guest sends. */
export const MAX_ENTRIES = 10_000;
const MAX_TEXT_CHARS = 64 * 1024;
/**
 * As much as is kept of a text that goes into every event of the domain. libvirt passes 2,048 texts of a guest on, each of
 * them may be megabytes long, and a message larger than 4 MiB reaches no handler.
 */
export const MAX_SHOWN_CHARS = 256;
const [MIN_INT64, MAX_INT64] = [-(2n ** 63n), 2n ** 63n - 1n];

/**
 * The `return` member of an agent's reply; undefined when the text is no JSON object, is too long or has none.
 * Integers beyond a double's precision come as bigint.
 */
function parseReturn(reply: string): unknown {
  if (reply.length > MAX_REPLY_CHARS) return undefined;
  try {
    const value = parseJson(reply);
    return typeof value === 'object' && value !== null && 'return' in value ? value.return : undefined;
  } catch {
    return undefined;
  }
}

/** The reply is of another shape than it should be: nothing in it is believed. */
class ShapeError extends Error {}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ShapeError('no object');
  return value as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new ShapeError('no list');
  return value.slice(0, MAX_ENTRIES);
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new ShapeError('no text');
  return value.slice(0, MAX_TEXT_CHARS);
}

function integerOf(value: unknown): AgentNumber {
  if (value === undefined || value === null) return 0;
  // Whoever reads the numbers has 64 bits for each.
  if (typeof value === 'bigint' && value >= MIN_INT64 && value <= MAX_INT64) return value;
  if (!Number.isSafeInteger(value)) throw new ShapeError('no integer');
  return value as number;
}

function booleanOf(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw new ShapeError('no boolean');
  return value;
}

function parseCommand(value: unknown): AgentCommand {
  const fields = fieldsOf(value);
  return { name: textOf(fields['name']), enabled: booleanOf(fields['enabled']) };
}

function parseFilesystem(value: unknown): AgentFilesystem {
  const fields = fieldsOf(value);
  return {
    name: textOf(fields['name']),
    mountpoint: textOf(fields['mountpoint']),
    type: textOf(fields['type']),
    usedBytes: integerOf(fields['used-bytes']),
    totalBytes: integerOf(fields['total-bytes']),
    disks: listOf(fields['disk'])
      .map(fieldsOf)
      .map((disk) => ({ serial: textOf(disk['serial']), busType: textOf(disk['bus-type']) })),
  };
}

function ifShaped(parse: () => AgentFacts): AgentFacts | undefined {
  try {
    return parse();
  } catch (caught) {
    if (caught instanceof ShapeError) return undefined;
    throw caught;
  }
}

/**
 * What a reply to `guest-info` tells; undefined when it is of another shape.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_parser.go
 */
export function parseGuestInfoReply(reply: string): AgentFacts | undefined {
  return ifShaped(() => {
    const fields = fieldsOf(parseReturn(reply));
    const supportedCommands = listOf(fields['supported_commands']).map(parseCommand);
    return { version: textOf(fields['version']), supportedCommands };
  });
}

/** What a reply to `guest-get-fsinfo` tells; undefined when it is of another shape. */
export function parseFsInfoReply(reply: string): AgentFacts | undefined {
  return ifShaped(() => {
    const list = parseReturn(reply);
    if (!Array.isArray(list)) throw new ShapeError('no list');
    return { filesystems: listOf(list).map(parseFilesystem) };
  });
}

/** What a reply to `guest-fsfreeze-status` tells; undefined when it is of another shape or tells nothing. */
export function parseFsFreezeReply(reply: string): AgentFacts | undefined {
  const status = parseReturn(reply);
  return typeof status === 'string' && status !== '' ? { fsFreezeStatus: status.slice(0, MAX_SHOWN_CHARS) } : undefined;
}
