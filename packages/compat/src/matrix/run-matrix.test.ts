import { cmdV1 } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { withLauncherFault } from '../mutants/mutate.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { SCENARIOS } from '../scenarios/scenarios.ts';
import { startOurLauncher } from './our-launcher.ts';
import { pairOf, planCells, runCell } from './run-matrix.ts';
import type { RunningHandler } from './subjects.ts';

const emulations = { startLauncher: startEmulatedLauncher, startHandler: startEmulatedHandler };

/** What happens to a VM between two releases, by the names of the scenarios. */
const BOTH_WAYS = [
  ...['first-start', 'status', 'update', 'pause', 'guest-agent', 'requests', 'graceful-stop', 'kill', 'pod-end'],
  ...['handler-restart', 'upgrade-in-the-middle', 'notify-loss', 'bad-requests', 'hotplug-disk'],
  ...['migration-source', 'migration-target'],
];

test('FM-1.12 every minor release is met in both directions, in every scenario of a VM', () => {
  const planned = planCells(['handler', 'launcher']).map((cell) => {
    const { handler, launcher } = pairOf(cell);
    return `${handler} ${launcher} ${cell.scenario.name}`;
  });
  const minors = Array.from({ length: 10 }, (_, minor) => `v1.${minor}`);
  const expected = minors.flatMap((line) =>
    BOTH_WAYS.flatMap((name) => [`new ${line} ${name}`, `${line} new ${name}`]),
  );
  expect(planned).toEqual(expect.arrayContaining(expected));
  expect(planned).toHaveLength(
    RELEASE_LINES.length * SCENARIOS.flatMap(({ handler, launcher }) => [handler, launcher].filter(Boolean)).length,
  );
});

function cellOf(side: 'handler' | 'launcher', scenario: string) {
  const [cell] = planCells([side], { lines: ['v1.6'], scenarios: [scenario] });
  if (cell === undefined) throw new Error(`there is no cell ${scenario}`);
  return cell;
}

/** A handler that never does anything. */
const idle: RunningHandler = { events: [], stop: () => Promise.resolve() };

test('a handler that says it lacks migrations and leaves the VM alone has a cell that is not built', async () => {
  const handler = (): Promise<RunningHandler> => Promise.resolve({ ...idle, missingParts: ['migrationProxies'] });
  const { result } = await runCell(cellOf('handler', 'migration-target'), { emulations, handler });
  expect(result).toEqual({ kind: 'notBuilt', missingPart: 'live migration, target side (handler)' });
});

test('a handler that does not say so has to migrate', async () => {
  const handler = (): Promise<RunningHandler> => Promise.resolve(idle);
  const { result } = await runCell(cellOf('handler', 'migration-target'), { emulations, handler });
  expect(result).toMatchObject({ kind: 'fail' });
});

test('a launcher that says that a part is not there yet has a cell that is not built, with its words', async () => {
  const message = 'pausing is not supported by this launcher yet';
  const bytes = cmdV1.Response.encode({ success: false, message }).finish();
  const launcher = withLauncherFault(startOurLauncher, {
    cmd: { changeAnswer: (path, answer) => (path.endsWith('/PauseVirtualMachine') ? { ...answer, bytes } : answer) },
  });
  const { result } = await runCell(cellOf('launcher', 'pause'), { emulations, launcher });
  expect(result).toEqual({ kind: 'notBuilt', missingPart: 'pausing' });
});
