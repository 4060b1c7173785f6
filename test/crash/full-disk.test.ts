/**
 * A store on a real disk that is full in the middle of a run, then read-only: `show` names it, nothing is lost, and once
 * the disk takes writes again the run goes on by itself to the bytes of the undisturbed one.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, rmSync, statfsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Project, succeed, ticTacToe } from '../stack.ts';
import { until } from '../until.ts';

const FLAGS = ['--base-model', 'pocket', '--steps', '3', '--groups-per-step', '4', '--group-size', '16'];
const MORE = ['--eval-scenarios', '2', '--seed', '5', '--learning-rate', '4e-3', '--replacement-rounds', '0'];
const CHUNK = Buffer.alloc(1 << 18);
/** Room on the disk when a run begins: filled at once, and far more than the run needs. */
const ROOM_BYTES = 1 << 24;

const project = new Project({ folder: inject('project') });
const store = project.path('store');
const ballast = project.path('store', 'ballast');

const train = (run: string) => project.start('train', ticTacToe(), '--run', run, ...FLAGS, ...MORE);
/** Up to what is to be left; else until nothing more can be written. */
function fillUp(leftBytes: number | null = null): void {
  for (;;) {
    const { bavail, bsize } = statfsSync(store);
    if (leftBytes !== null && bavail * bsize <= leftBytes) return;
    try {
      appendFileSync(ballast, CHUNK);
    } catch {
      return;
    }
  }
}

/** Busy as long as somebody has a file open for writing: it is asked again in between. */
function remount(option: string): Promise<void> {
  const isDone = () => spawnSync('mount', ['-o', `remount,${option}`, store]).status === 0;
  return until(`the disk is mounted ${option}`, isDone);
}

interface Refusal {
  code: string;
  refuse: () => Promise<void>;
  heal: () => Promise<void>;
}

const REFUSALS: Refusal[] = [
  {
    code: 'ENOSPC',
    refuse: async () => fillUp(),
    heal: async () => rmSync(ballast),
  },
  { code: 'EROFS', refuse: () => remount('ro'), heal: () => remount('rw') },
];

interface Shown {
  row: { state: string };
  pendingActivities: { lastFailure: string | null; attempt: number }[] | null;
}

describe.skipIf(!inject('hasOwnDisk'))('a disk', () => {
  let undisturbed: Record<string, string>;

  beforeAll(async () => {
    await succeed(train('calm').ended);
    undisturbed = project.committed('calm');
    fillUp(ROOM_BYTES);
  });

  afterAll(() => rmSync(ballast, { force: true }));

  test.each(REFUSALS)('that refuses with $code in the middle of a run is named and waited for', async (refusal) => {
    const run = `refused-${refusal.code.toLowerCase()}`;
    const running = train(run);
    await until('step 1 is committed', () => existsSync(project.manifest(run, 1)));
    await refusal.refuse();
    try {
      const isNamed = ({ pendingActivities }: Shown) =>
        (pendingActivities ?? []).some(({ lastFailure }) => lastFailure?.includes(refusal.code));
      let shown = await project.show<Shown>(run);
      while (!isNamed(shown)) {
        expect(running.outcome(), running.output()).toBeNull();
        shown = await project.show<Shown>(run);
      }
      const failures = shown.pendingActivities!.map(({ lastFailure }) => lastFailure).filter((text) => text !== null);
      for (const failure of failures) expect(failure).toMatch(new RegExp(`^StoreUnavailable: .*${refusal.code}`));
      expect(shown.row.state).toBe('running');
    } finally {
      await refusal.heal();
    }
    await succeed(running.ended);
    expect(project.committed(run)).toEqual(undisturbed);
  });
});
