import { expect, test } from 'vitest';
import { resolveTarget } from './uri.ts';

const environment = { XDG_RUNTIME_DIR: '/run/user/5', HOME: '/home/u' };

test.each<[Parameters<typeof resolveTarget>[0], string, readonly string[]]>([
  [{}, 'qemu:///system', ['/var/run/libvirt/virtqemud-sock', '/var/run/libvirt/libvirt-sock']],
  [{ readOnly: true }, 'qemu:///system', ['/var/run/libvirt/virtqemud-sock-ro', '/var/run/libvirt/libvirt-sock-ro']],
  [
    { uri: 'qemu:///session' },
    'qemu:///session',
    ['/run/user/5/libvirt/virtqemud-sock', '/run/user/5/libvirt/libvirt-sock'],
  ],
  // The name on the wire never has a transport: the daemon would connect to itself.
  [{ uri: 'qemu+unix:///session?socket=/run/s' }, 'qemu:///session', ['/run/s']],
  [{ uri: 'qemu+unix:///system?socket=/run/s', socketPath: '/run/other' }, 'qemu:///system', ['/run/other']],
  [{ uri: 'test:///default' }, 'test:///default', ['/var/run/libvirt/virttestd-sock', '/var/run/libvirt/libvirt-sock']],
])('resolves %j to %s', (options, driverUri, socketPaths) => {
  expect(resolveTarget(options, environment)).toEqual({ driverUri, socketPaths });
});

test('takes the default from the environment, as all libvirt clients do', () => {
  const withDefault = { ...environment, LIBVIRT_DEFAULT_URI: 'qemu+unix:///session?socket=/run/s' };
  expect(resolveTarget({}, withDefault)).toEqual({ driverUri: 'qemu:///session', socketPaths: ['/run/s'] });
  expect(resolveTarget({ uri: 'qemu:///system' }, withDefault).driverUri).toBe('qemu:///system');
  expect(resolveTarget({}, { LIBVIRT_DEFAULT_URI: '' }).driverUri).toBe('qemu:///system');
});

test('finds the session directory without a runtime directory', () => {
  expect(resolveTarget({ uri: 'qemu:///session' }, { HOME: '/home/u' }).socketPaths[1]).toBe(
    '/home/u/.cache/libvirt/libvirt-sock',
  );
});

test.each(['qemu+tcp://host/system', 'qemu+ssh://root@host/system', 'nonsense', 'qemu://host/system', ''])(
  'refuses %s',
  (uri) => {
    expect(() => resolveTarget({ uri }, environment)).toThrow(/only unix sockets are supported/);
  },
);
