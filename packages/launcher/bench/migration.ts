import { createVmi, hasGuest } from '../integration/support/guest.ts';
import { hearEnd, migrating, startMigration } from '../integration/support/migration.ts';
import { notePauses, startScene } from '../integration/support/migration-scene.ts';
import { eventually } from '../integration/support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-0000000000bf';

/**
 * Moves an idle guest between two pods.
 *
 * @returns how long it stood still, in ms; undefined without a guest (`scripts/guest/build.sh`).
 */
export async function timeMigration(): Promise<number | undefined> {
  if (!hasGuest) return undefined;
  const vmi = createVmi({ name: 'vm1', uid: UID, withGuest: true });
  await using scene = await startScene(vmi);
  const pauses = await notePauses(scene);
  await startMigration(scene.source, scene.target, migrating(vmi, 'bench'));
  await hearEnd(scene.target, 'bench');
  await eventually('the numbers of the migration', () => pauses.length > 0);
  return Math.max(...pauses);
}
