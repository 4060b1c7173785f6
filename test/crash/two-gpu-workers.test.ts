/**
 * Two GPU workers on one queue. One is frozen in the middle of train and thawed after the other finished the step: one
 * commit, and the late one says that it discarded its work. Frozen while idle it holds the run up, and does nothing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Project, until, type Running } from './project.ts';
import { startSecondGpuWorker, told, type SecondWorker } from './second-worker.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 5;
const FLAGS = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '4', '--group-size', '16'];
const MORE = ['--eval-scenarios', '1', '--seed', '5', '--learning-rate', '4e-3', '--replacement-rounds', '0'];
/** Whoever was handed a task while it stood still answers at once. */
const THAWED_MS = 3000;
const MOST_RUNS = 3;

const project = new Project();
let stack: Running;
let second: SecondWorker;

const manifest = (run: string, step: number) =>
  project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');

beforeAll(async () => {
  stack = project.start('dev', '--agent', AGENT);
  const isUp = () => stack.output().includes('Ctrl-C stops it') || stack.child.exitCode !== null;
  await until('the stack runs', isUp, 180_000);
  second = await startSecondGpuWorker(project);
});

afterAll(async () => {
  await second.close();
  stack.child.kill('SIGINT');
  await stack.ended;
  await project.close();
});

interface Frozen {
  readonly run: string;
  readonly step: number;
  readonly running: Running;
}

/** Frozen at the beginning of a step that it has not committed; which of the two gets a step is the server's choice. */
async function freezeInTrain(): Promise<Frozen> {
  for (let number = 1; number <= MOST_RUNS; number++) {
    const run = `frozen-${number}`;
    const running = project.start('train', AGENT, '--run', run, ...FLAGS, ...MORE);
    const step = await freezeInRun(run, running);
    if (step !== null) return { run, step, running };
  }
  throw new Error(`in ${MOST_RUNS} runs the second worker was not met in the middle of a step`);
}

/** Null where the run ended first. */
async function freezeInRun(run: string, { child }: Running): Promise<number | null> {
  for (let seen = 0; ;) {
    const trains = () => second.told('step begins', run).length > seen;
    await until('the second worker trains', () => trains() || child.exitCode !== null);
    if (child.exitCode !== null) return null;
    second.freeze();
    const step = second.told('step begins', run).at(-1)!;
    if (step > 0 && !existsSync(manifest(run, step))) return step;
    second.thaw();
    seen = second.told('step begins', run).length;
  }
}

test('the late worker discards its step, an idle frozen one does nothing, and the bytes are the undisturbed run’s', async () => {
  const { run, step, running } = await freezeInTrain();
  await until('the other worker commits the step', () => existsSync(manifest(run, step)));
  const winners = readFileSync(manifest(run, step));
  second.thaw();
  await until('the late one says so', () => second.told('step discarded', run).includes(step));

  const begun = second.told('step begins', run).length;
  second.freeze();
  const { code, output } = await running.ended;
  expect(code, output).toBe(0);
  second.thaw();
  await sleep(THAWED_MS);
  expect(second.told('step begins', run)).toHaveLength(begun);

  const commits = [...second.log(), ...project.log('gpu-worker')].filter(({ found }) => found === false);
  const steps = told(commits, 'step committed', run).toSorted((a, b) => a - b);
  expect(steps).toEqual(Array.from({ length: STEPS + 1 }, (_, each) => each));
  expect(readFileSync(manifest(run, step)).equals(winners)).toBe(true);

  expect((await project.run('train', AGENT, '--run', 'undisturbed', ...FLAGS, ...MORE)).code).toBe(0);
  expect(project.committed(run)).toEqual(project.committed('undisturbed'));
});
