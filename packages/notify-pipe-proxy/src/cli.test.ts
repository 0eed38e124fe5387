import { describe, expect, test } from 'vitest';

import { EXIT, HELP, parseCli } from './cli.ts';

describe('the command line', () => {
  test('takes every option', () => {
    const args = [
      '--pod-pid',
      '4711',
      '--target',
      '/n.sock',
      '--directory',
      '/run/kubevirt',
      '--socket-name',
      'p.sock',
    ];
    expect(parseCli([...args, '--owner', '107:108', '--verbosity', '3'])).toEqual({
      kind: 'run',
      options: {
        podPid: 4711,
        target: '/n.sock',
        directory: '/run/kubevirt',
        socketName: 'p.sock',
        owner: { uid: 107, gid: 108 },
        verbosity: 3,
      },
    });
  });

  test('has the defaults of a launcher pod', () => {
    expect(parseCli(['--pod-pid', '1', '--target', '/n.sock'])).toMatchObject({
      options: { directory: '/var/run/kubevirt', socketName: 'domain-notify-pipe.sock', owner: undefined },
    });
  });

  test.each<[string[], string]>([
    [[], '--target is missing'],
    [['--target', '/n'], '--pod-pid is missing'],
    [['--target', '/n', '--pod-pid', '0'], '--pod-pid has to be at least 1'],
    [['--target', '/n', '--pod-pid', '-1'], '--pod-pid'],
    [['--target', '/n', '--pod-pid', '1x'], '--pod-pid has to be a number, not "1x"'],
    [['--target', '/n', '--pod-pid', '1', '--owner', '107'], 'the group of --owner is missing'],
    [['--target', '/n', '--pod-pid', '1', '--owner', '1:2:3'], '--owner has to be UID:GID'],
    [['--target', '/n', '--pod-pid', '1', '--directory', 'run'], '--directory has to be absolute'],
    [['--nonsense'], '--nonsense'],
    [['stray'], 'stray'],
  ])('%j is wrong use', (args, message) => {
    const result = parseCli(args);
    expect(result.kind).toBe('usage');
    expect(result.kind === 'usage' && result.message).toContain(message);
  });

  test('the help names every exit code and has an example', () => {
    for (const code of Object.values(EXIT)) expect(HELP).toMatch(new RegExp(`\\b${code} `));
    expect(HELP).toContain('Example:');
    expect(parseCli(['--help'])).toEqual({ kind: 'help' });
  });
});
