import { HostError } from '@virtwire/host';
import { describe, expect, test } from 'vitest';
import { hasErrorCode } from '../../errors.ts';
import type { Vmi } from '../../model.ts';
import type { LauncherRoot } from './launcher-root.ts';
import { setUpOwnership } from './ownership.ts';
import type { DeviceFacts } from './ownership.ts';

const NODES = ['/dev/kvm', '/dev/net/tun', '/dev/vhost-net'];

/** A launcher's tree of some files, which writes down what is asked of it. */
function fakeRoot(paths: readonly string[]): LauncherRoot & { readonly done: string[] } {
  const done: string[] = [];
  const present = (path: string): void => {
    const isThere = paths.some((p) => p === path || p.startsWith(`${path}/`));
    if (!isThere) throw new HostError('Syscall', `open ${path}: no such file or directory`, { errno: 'ENOENT' });
  };
  return {
    done,
    chownToQemu(path) {
      present(path);
      done.push(path);
    },
    chmod(path, mode) {
      present(path);
      done.push(`${mode.toString(8)} ${path}`);
    },
    list: (dir) => paths.filter((p) => p.startsWith(`${dir}/`)).map((p) => p.slice(dir.length + 1)),
  };
}

function vmiWith(change: object, runtimeUser = 107): Vmi {
  const spec = { domain: { devices: { interfaces: [{ name: 'default', masquerade: {} }] } }, ...change };
  return { metadata: { namespace: 'ns', name: 'vm', uid: 'u' }, spec, status: { runtimeUser } };
}

async function claimed(vmi: Vmi, paths: readonly string[], facts: Partial<DeviceFacts> = {}): Promise<string[]> {
  const root = fakeRoot(paths);
  await setUpOwnership(root, vmi, { hypervisorDevice: 'kvm', useEmulation: false, ...facts });
  return root.done;
}

describe('device ownership', () => {
  test.each<[string, Vmi, readonly string[], Partial<DeviceFacts>, readonly string[]]>([
    ['takes kvm, vhost-net and tun', vmiWith({}), NODES, {}, ['/dev/kvm', '/dev/vhost-net', '/dev/net/tun']],
    ['leaves the network devices of a root VM', vmiWith({}, 0), NODES, {}, ['/dev/kvm']],
    ['FM-7.2 does without kvm and vhost-net under emulation', vmiWith({}), ['/dev/net/tun'], { useEmulation: true }, ['/dev/net/tun']], // prettier-ignore
    ['takes another hypervisor’s device', vmiWith({}), ['/dev/mshv', ...NODES], { hypervisorDevice: 'mshv' }, ['/dev/mshv', '/dev/vhost-net', '/dev/net/tun']], // prettier-ignore
    ['takes no network device without a network', vmiWith({ domain: { devices: {} } }), NODES, {}, ['/dev/kvm']],
    ['takes no vhost-net for other models', vmiWith({ domain: { devices: { interfaces: [{ name: 'a', model: 'e1000', bridge: {} }] } } }), NODES, {}, ['/dev/kvm', '/dev/net/tun']], // prettier-ignore
    ['opens the vfio control node and takes the groups', vmiWith({}), [...NODES, '/dev/vfio/17', '/dev/vfio/vfio'], {}, ['/dev/kvm', '/dev/vfio/17', '666 /dev/vfio/vfio', '/dev/vhost-net', '/dev/net/tun']], // prettier-ignore
    ['leaves groups alone without the vfio control node', vmiWith({}), [...NODES, '/dev/vfio/17'], {}, ['/dev/kvm', '/dev/vhost-net', '/dev/net/tun']], // prettier-ignore
  ])('%s', async (_title, vmi, paths, facts, expected) => {
    expect(await claimed(vmi, paths, facts)).toEqual(expected);
  });

  test('FM-5.6 makes a missing tun a critical network error that names it', async () => {
    const work = claimed(vmiWith({}), ['/dev/kvm', '/dev/vhost-net']);
    await expect(work).rejects.toThrow('Critical network error: failed to set up tun device, open /dev/net/tun');
    await expect(work).rejects.toSatisfy((error: unknown) => hasErrorCode(error, 'CriticalNetwork'));
  });

  test('fails without kvm when emulation is not allowed', async () => {
    await expect(claimed(vmiWith({}), ['/dev/net/tun'])).rejects.toThrow(
      'failed to set up file ownership for /dev/kvm',
    );
  });

  test('gives block claims and host disk directories, and wants a status for claims', async () => {
    const volumes = [
      { name: 'root', persistentVolumeClaim: { claimName: 'c' } },
      { name: 'data', hostDisk: { path: '/x/disk.img', type: 'Disk' } },
    ];
    const dir = '/var/run/kubevirt-private/vmi-disks/data';
    const vmi = vmiWith({ volumes, domain: { devices: {} } });
    await expect(claimed(vmi, NODES)).rejects.toThrow('missing volume status for volume root');
    const volumeStatus = [{ name: 'root', persistentVolumeClaimInfo: { volumeMode: 'Block' } }];
    const known = { ...vmi, status: { ...vmi.status, volumeStatus } } as unknown as Vmi;
    expect(await claimed(known, [...NODES, '/dev/root', `${dir}/disk.img`])).toEqual(['/dev/kvm', '/dev/root', dir]);
  });
});
