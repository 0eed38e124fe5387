import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { structCoder } from './codec.ts';
import { ConnectListAllDomainsFlags, DomainState, DomainXMLFlags, ErrorNumber } from './gen/constants.gen.ts';
import { findProcedure, findProcedureByNumber } from './procedures.ts';

interface ProtocolFile {
  readonly structs: Readonly<Record<string, unknown>>;
  readonly programs: Readonly<
    Record<
      string,
      {
        readonly program: number;
        readonly procedures: readonly {
          name: string;
          number: number;
          kind: string;
          args?: string | null;
          ret?: string | null;
          msg?: string | null;
          stream?: string;
        }[];
      }
    >
  >;
}

const root = join(import.meta.dirname, '..');
const protocol = JSON.parse(readFileSync(join(root, 'protocol/protocol.json'), 'utf8')) as ProtocolFile;

test('finds every procedure of the protocol, by name and by number, with what it has', () => {
  let count = 0;
  for (const [programName, { program, procedures }] of Object.entries(protocol.programs)) {
    for (const wanted of procedures) {
      const name = programName === 'remote' ? wanted.name : `${programName.toUpperCase()}_${wanted.name}`;
      const found = findProcedure(name);
      expect(found).toMatchObject({ name, program, number: wanted.number, isEvent: wanted.kind === 'event' });
      expect(findProcedureByNumber(program, wanted.number)).toBe(found);
      expect([found?.args !== undefined, found?.ret !== undefined, found?.msg !== undefined]).toEqual(
        [wanted.args, wanted.ret, wanted.msg].map((struct) => typeof struct === 'string'),
      );
      expect(found?.stream).toBe(wanted.stream);
      count++;
    }
  }
  expect(count).toBe(462);
});

test('has every struct of the protocol but the three that code reads by hand', () => {
  const byHand = new Set(['virNetMessageHeader', 'remote_typed_param', 'remote_error']);
  for (const name of Object.keys(protocol.structs)) {
    const make = (): unknown => structCoder(name.replace(/^remote_/, ''));
    if (byHand.has(name)) expect(make).toThrow(/no struct/);
    else expect(make()).toBeDefined();
  }
});

test.each(['', 'NO_SUCH', 'DOMAIN_GET', '.*', 'remote 1'])('knows no procedure %j', (name) => {
  expect(findProcedure(name)).toBeUndefined();
});

test.each([
  [1, 1],
  [0x2000_8086, 0],
  [0x2000_8086, 454],
  [0x2000_8086, -1],
])('knows no procedure %d of program %d', (program, number) => {
  expect(findProcedureByNumber(program, number)).toBeUndefined();
});

test('has the values of libvirt’s headers', () => {
  expect(DomainState.SHUTOFF).toBe(5);
  expect(DomainXMLFlags.MIGRATABLE).toBe(8);
  expect(ErrorNumber.NO_DOMAIN).toBe(42);
  expect(ErrorNumber.AGENT_COMMAND_FAILED).toBe(113);
  expect(ConnectListAllDomainsFlags.NO_CHECKPOINT).toBe(0x8000);
});

test('the committed generated files are those that the generator makes', () => {
  const args = ['--conditions', '@virtwire/source', join(root, 'scripts/gen.ts'), '--check'];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe('');
});
