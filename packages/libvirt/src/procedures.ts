import { structCoder } from './codec.ts';
import type { Coder } from './codec.ts';
import { PROCEDURES, PROGRAMS } from './gen/schema.gen.ts';

/** Name of a program of the protocol. */
type ProgramName = keyof typeof PROGRAMS;

/** What a stream procedure's stream can do, seen from the client. */
export type StreamDirection = 'read' | 'write' | 'duplex';

/** One procedure of the protocol, with the coders of its structs. */
export interface Procedure {
  readonly name: string;
  readonly program: number;
  readonly number: number;
  readonly isEvent: boolean;
  readonly args: Coder | undefined;
  readonly ret: Coder | undefined;
  readonly msg: Coder | undefined;
  readonly stream: StreamDirection | undefined;
  /** File descriptors may go along with the call. */
  readonly takesDescriptors: boolean;
  /** File descriptors come with the reply, which this client cannot receive. */
  readonly givesDescriptors: boolean;
}

const byName = new Map<string, Procedure>();
const byNumber = new Map<string, Procedure>();

/** Finds a procedure by its name in this package, `DOMAIN_GET_INFO` or `QEMU_DOMAIN_AGENT_COMMAND`. */
export function findProcedure(name: string): Procedure | undefined {
  const known = byName.get(name);
  if (known !== undefined) return known;
  const at = PROCEDURES.search(new RegExp(`^\\w+ \\d+ ${name}\\b`, 'm'));
  return /^\w+$/.test(name) && at >= 0 ? parseAt(at) : undefined;
}

/** Finds a procedure by its numbers on the wire. */
export function findProcedureByNumber(program: number, number: number): Procedure | undefined {
  const known = byNumber.get(`${String(program)} ${String(number)}`);
  if (known !== undefined) return known;
  const name = (Object.keys(PROGRAMS) as ProgramName[]).find((known) => PROGRAMS[known] === program);
  const at = `\n${PROCEDURES}`.indexOf(`\n${name ?? '?'} ${String(number)} `);
  return at < 0 ? undefined : parseAt(at);
}

function parseAt(start: number): Procedure {
  const end = PROCEDURES.indexOf('\n', start);
  const line = PROCEDURES.slice(start, end < 0 ? undefined : end);
  const [programName = 'remote', number = '', name = '', ...has] = line.split(' ');
  const base =
    programName === 'remote'
      ? name.toLowerCase()
      : `${programName}_${name.slice(programName.length + 1).toLowerCase()}`;
  const coder = (kind: string): Coder | undefined => (has.includes(kind) ? structCoder(`${base}_${kind}`) : undefined);
  const procedure: Procedure = {
    name,
    program: PROGRAMS[programName as ProgramName],
    number: Number(number),
    isEvent: has.includes('event'),
    args: coder('args'),
    ret: coder('ret'),
    msg: coder('msg'),
    stream: has.find((word) => word.startsWith('stream='))?.slice('stream='.length) as StreamDirection | undefined,
    takesDescriptors: has.includes('fds=in'),
    givesDescriptors: has.includes('fds=out'),
  };
  byName.set(name, procedure);
  byNumber.set(`${String(procedure.program)} ${number}`, procedure);
  return procedure;
}
