import type { DomainDisk } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import type { BackupPlan } from './documents.ts';
import { createBackupDocuments, renderCheckpoint } from './documents.ts';

const plan: BackupPlan = {
  ...{ name: 'b1', startTime: '2000-01-01T10:20:30Z', mode: 'Push', targetPath: '/T', incremental: undefined },
  ...{ skipQuiesce: false, directory: '/T/vm/b1-2000-01-01_10-20-30', nbdSocket: '/run/nbd' },
};
const tracked: DomainDisk = {
  Source: { File: '/cbt/Root.qcow2', DataStore: { Source: { File: '/disk.img' } } },
  Target: { Device: 'vda' },
  Alias: { Name: 'root', UserDefined: true },
};
const plain: DomainDisk = { Source: { File: '/x.img' }, Target: { Device: 'vdb' } };
const nameless: DomainDisk = { Source: { File: '/y.img' } };

test('tracked disks are copied and get a bitmap, the others are left out; paths keep their case', () => {
  expect(createBackupDocuments(plan, [tracked, plain, nameless])).toEqual({
    checkpointName: 'b1-2000-01-01_10-20-30',
    backupXml:
      '<domainbackup mode="push"><disks><disk name="vda" backup="yes" type="file">' +
      '<target file="/T/vm/b1-2000-01-01_10-20-30/b1-root.qcow2"></target></disk>' +
      '<disk name="vdb" backup="no"></disk></disks></domainbackup>',
    checkpointXml:
      '<domaincheckpoint><name>b1-2000-01-01_10-20-30</name><disks><disk name="vda" checkpoint="bitmap"></disk>' +
      '<disk name="vdb" checkpoint="no"></disk></disks></domaincheckpoint>',
    volumes: [{ volumeName: 'root', diskTarget: 'vda' }],
  });
});

test('a pull backup is shown by name on a socket, with scratch files', () => {
  const { backupXml } = createBackupDocuments({ ...plan, mode: 'Pull', incremental: 'b0' }, [tracked]);
  expect(backupXml).toBe(
    '<domainbackup mode="pull"><incremental>b0</incremental><disks><disk name="vda" backup="yes" type="file" ' +
      'exportname="root" exportbitmap="b1-2000-01-01_10-20-30">' +
      '<scratch file="/T/vm/b1-2000-01-01_10-20-30/b1-root.qcow2"></scratch></disk></disks>' +
      '<server transport="unix" socket="/run/nbd"></server></domainbackup>',
  );
});

test('names are escaped', () => {
  expect(createBackupDocuments({ ...plan, name: 'a"<&' }, []).checkpointXml).toContain('<name>a&#34;&lt;&amp;-2000');
  expect(renderCheckpoint('a<', new Map([['v"a', 'bitmap']]), 7)).toBe(
    '<domaincheckpoint><name>a&lt;</name><disks><disk name="v&#34;a" checkpoint="bitmap"></disk></disks>' +
      '<creationTime>7</creationTime></domaincheckpoint>',
  );
});
