/**
 * A store on a real disk that is full in the middle of a run, then read-only: `show` names it, nothing is lost, and once
 * the disk takes writes again the run goes on by itself to the bytes of the undisturbed one.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Project, until, type Running } from './project.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const FLAGS = ['--base-model', 'pocket', '--steps', '3', '--groups-per-step', '4', '--group-size', '16'];
const MORE = ['--eval-scenarios', '2', '--seed', '5', '--learning-rate', '4e-3', '--replacement-rounds', '0'];
const DISK = 'size=48m';
const CHUNK = Buffer.alloc(1 << 18);

const project = new Project();
const store = project.path('store');
mkdirSync(store);
/** Only root mounts; where it may not, the store's own seam has to do (test/activities/full-disk.test.ts). */
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', store]).status === 0;

const train = (run: string) => project.start('train', AGENT, '--run', run, ...FLAGS, ...MORE);
const manifest = (run: string, step: number) =>
  project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');

function fillUp(): void {
  const ballast = project.path('store', 'ballast');
  for (;;) {
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
  return until(`the disk is mounted ${option}`, isDone, 60_000);
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
    heal: async () => rmSync(project.path('store', 'ballast')),
  },
  { code: 'EROFS', refuse: () => remount('ro'), heal: () => remount('rw') },
];

interface Shown {
  state: string;
  pendingActivities: { lastFailure: string | null; attempt: number }[] | null;
}

async function show(run: string): Promise<Shown> {
  const { output } = await project.run('show', run, '--json');
  return JSON.parse(output) as Shown;
}

describe.skipIf(!isMounted)('a disk', () => {
  let stack: Running;
  let undisturbed: Record<string, string>;

  beforeAll(async () => {
    stack = project.start('dev', '--agent', AGENT);
    const isUp = () => stack.output().includes('Ctrl-C stops it') || stack.child.exitCode !== null;
    await until('the stack runs', isUp, 180_000);
    const { code, output } = await train('undisturbed').ended;
    expect(code, output).toBe(0);
    undisturbed = project.committed('undisturbed');
  });

  afterAll(async () => {
    stack.child.kill('SIGINT');
    await stack.ended;
    await until('the stack is gone', () => project.alive().length === 0, 30_000);
    spawnSync('umount', [store]);
    await project.close();
  });

  test.each(REFUSALS)('that refuses with $code in the middle of a run is named and waited for', async (refusal) => {
    const run = `refused-${refusal.code.toLowerCase()}`;
    const running = train(run);
    await until('step 1 is committed', () => existsSync(manifest(run, 1)));
    await refusal.refuse();
    try {
      const isNamed = ({ pendingActivities }: Shown) =>
        (pendingActivities ?? []).some(({ lastFailure }) => lastFailure?.includes(refusal.code));
      let shown = await show(run);
      while (!isNamed(shown)) shown = await show(run);
      const failures = shown.pendingActivities!.map(({ lastFailure }) => lastFailure).filter((text) => text !== null);
      for (const failure of failures) expect(failure).toMatch(new RegExp(`^StoreUnavailable: .*${refusal.code}`));
      expect(shown.state).toBe('running');
    } finally {
      await refusal.heal();
    }
    const { code, output } = await running.ended;
    expect(code, output).toBe(0);
    expect(project.committed(run)).toEqual(undisturbed);
  });
});
