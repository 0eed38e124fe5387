import { emptyDomain } from '@virtwire/vm-model';
import type { BackupMetadata, Domain } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { trackingWithBackup } from './backup.ts';

const startTimestamp = '2026-03-01T09:58:00Z';
const named = { backupName: 'b1', startTimestamp };
const running: BackupMetadata = { Name: 'b1', StartTimestamp: startTimestamp };
const ended: BackupMetadata = { ...running, EndTimestamp: '2026-03-01T09:59:30Z', Completed: true };

function domainWith(Backup: BackupMetadata | undefined): Domain {
  const domain = emptyDomain();
  return { ...domain, Spec: { ...domain.Spec, Metadata: { KubeVirt: { Backup } } } };
}

const nextOf = (Backup: BackupMetadata | undefined, backupStatus: object = named) =>
  trackingWithBackup({ state: 'Enabled', backupStatus }, domainWith(Backup));

test('a backup that ended says how, and what it holds', () => {
  const volumes = [{ volumeName: 'root', diskTarget: 'vda' }];
  const more = { BackupMsg: 'done', CheckpointName: 'cp-1', QuiesceStatus: 'Succeeded' };
  expect(nextOf({ ...ended, ...more, Volumes: JSON.stringify(volumes) })).toEqual({
    state: 'Enabled',
    backupStatus: {
      ...{ ...named, completed: true, endTimestamp: '2026-03-01T09:59:30Z', backupMsg: 'done' },
      ...{ checkpointName: 'cp-1', quiesceStatus: 'Succeeded', volumes },
    },
  });
});

test.each<[string, BackupMetadata | undefined]>([
  ['that runs', running],
  ['of another name', { ...ended, Name: 'b0' }],
  ['of another time', { ...ended, StartTimestamp: '2026-03-01T09:58:01Z' }],
  ['that is not known', undefined],
  ['that failed to start', {}],
])('a backup %s changes nothing', (_title, backup) => {
  expect(nextOf(backup)).toEqual({ state: 'Enabled', backupStatus: named });
});

test('volumes that cannot be read leave the rest', () => {
  expect(nextOf({ ...ended, Failed: true, BackupMsg: 'disk full', Volumes: 'not json' }).backupStatus).toEqual({
    ...{ ...named, completed: true, failed: true, endTimestamp: '2026-03-01T09:59:30Z', backupMsg: 'disk full' },
  });
  expect(nextOf({ ...ended, Volumes: 'null' }).backupStatus).not.toHaveProperty('volumes');
});

test('tracking without a backup stays as it is', () => {
  expect(trackingWithBackup({ state: 'Enabled' }, domainWith(ended))).toEqual({ state: 'Enabled' });
});
