import { compareMessages, type MessageNote } from './compare-messages.ts';
import type { Schema, SchemaRpc } from './model.ts';
import type { SchemaRule } from './semantics.ts';

/** Something that a peer of an older or newer release cannot bear. */
export interface SchemaBreak {
  readonly rule: SchemaRule;
  /** `Cmd/SyncVirtualMachine`, `VirtualMachineOptions.DisksInfo`. */
  readonly where: string;
  /** Who notices: the peers of the release that have the other end of the RPC. */
  readonly whom: 'handlers' | 'launchers' | 'both sides';
  readonly text: string;
}

/**
 * Compares a schema with that of a release, whose peers it would meet.
 *
 * What is only there is no break: peers skip fields and answer UNIMPLEMENTED to RPCs that they do not know.
 */
export function compareSchemas(next: Schema, release: Schema): readonly SchemaBreak[] {
  const breaks = [...release.rpcs.values()].flatMap((old) => compareRpc(next, release, old));
  return [...new Map(breaks.map((one) => [`${one.rule} ${one.where} ${one.text}`, one])).values()];
}

function compareRpc(next: Schema, release: Schema, old: SchemaRpc): readonly SchemaBreak[] {
  const where = old.path.replace(/^\/.*\.(?=[^/]*\/)/, '');
  const [client, server] = partiesOf(old.path);
  const rpc = next.rpcs.get(old.path);
  if (rpc === undefined) {
    const text = `${client} call it and get UNIMPLEMENTED; ${server} serve it in vain`;
    return [{ rule: 'RPC_NO_DELETE', where, whom: client, text }];
  }
  if (rpc.isStreaming !== old.isStreaming) {
    return [
      { rule: 'RPC_SAME_STREAMING', where, whom: 'both sides', text: 'a stream on one side only cannot be read' },
    ];
  }
  const places = [
    { from: old.request, to: rpc.request, whom: server, what: 'request' },
    { from: old.response, to: rpc.response, whom: client, what: 'response' },
  ] as const;
  return places.flatMap(({ from, to, whom, what }) => {
    const type = from === to ? '' : `${where} has another ${what} (${shortName(from)}, now ${shortName(to)}): `;
    return compareMessages({ next, release }, from, to).map((note) => toBreak(note, whom, type));
  });
}

function toBreak(note: MessageNote, reader: 'handlers' | 'launchers', prefix: string): SchemaBreak {
  // A field that has gone is missed by who reads the message; one of another kind is misread by both.
  const whom = note.rule === 'FIELD_NO_DELETE' || note.rule === 'FIELD_NEEDED' ? reader : 'both sides';
  return { ...note, whom, text: `${prefix}${note.text}` };
}

/** Who calls a service and who serves it. */
function partiesOf(path: string): readonly ['handlers' | 'launchers', 'handlers' | 'launchers'] {
  return path.startsWith('/kubevirt.notify.') ? ['launchers', 'handlers'] : ['handlers', 'launchers'];
}

/** The name of a message without its package. */
function shortName(fullName: string): string {
  return fullName.slice(fullName.lastIndexOf('.') + 1);
}
