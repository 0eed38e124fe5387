import { describe, expect, test } from 'vitest';
import { orderedInterface, parseStateFile, renderStateFile } from './state-file.ts';

describe('a state file', () => {
  test('has Go’s form: two blanks, keys in order, no newline, no zero values', () => {
    expect(
      renderStateFile({ networkState: 2, podIPs: ['10.0.0.5'], podIP: '10.0.0.5', iface: { name: 'default' } }),
    ).toBe(
      '{\n  "iface": {\n    "name": "default"\n  },\n  "podIP": "10.0.0.5",\n  "podIPs": [\n    "10.0.0.5"\n  ],\n  "networkState": 2\n}',
    );
    expect(renderStateFile({ networkState: 0 })).toBe('{}');
  });

  test('reads back, whatever else is in it', () => {
    const state = { iface: { name: 'a' }, podIP: 'fd00::5', podIPs: ['fd00::5', '10.0.0.5'], networkState: 1 };
    expect(parseStateFile(renderStateFile(state))).toEqual(state);
    expect(parseStateFile('{"more": 1, "podIP": 7, "networkState": "2"}')).toEqual({});
  });

  test.each(['', '[]', '7', 'null', '{"podIP": '])('%j is none', (text) => {
    expect(() => parseStateFile(text)).toThrow(SyntaxError);
  });

  test('an interface is printed in the order of Go’s fields, unknown ones last', () => {
    const iface = { state: 'up', later: 1, ports: [{ port: 80, protocol: 'TCP', name: 'http' }], masquerade: {}, name: 'default' } as const; // prettier-ignore
    expect(JSON.stringify(orderedInterface({ ...iface, ports: [...iface.ports] }))).toBe(
      '{"name":"default","masquerade":{},"ports":[{"name":"http","protocol":"TCP","port":80}],"state":"up","later":1}',
    );
  });
});
