/**
 * Two GPU workers on one queue. One is frozen in the middle of train and thawed after the other finished the step: one
 * commit, and the late one says that it discarded its work. Frozen while idle it holds the run up, and does nothing.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Aim } from './points/protocol.ts';
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
let points: string;

const manifest = (run: string, step: number) =>
  project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');

beforeAll(async () => {
  stack = project.start('dev', '--agent', AGENT);
  const isUp = () => stack.output().includes('Ctrl-C stops it') || stack.child.exitCode !== null;
  await until('the stack runs', isUp, 180_000);
  points = project.path('points');
  mkdirSync(points);
  second = await startSecondGpuWorker(project, points);
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

/** Stopped by itself between two micro-batches; which of the two workers gets a step is the server's choice. */
async function freezeInTrain(): Promise<Frozen> {
  for (let number = 1; number <= MOST_RUNS; number++) {
    const run = `frozen-${number}`;
    const aim: Aim = { row: run, point: 'train.micro-batch', occurrence: 1, action: 'stop' };
    writeFileSync(join(points, 'aim-gpu-worker.json'), JSON.stringify(aim));
    const running = project.start('train', AGENT, '--run', run, ...FLAGS, ...MORE);
    const isStopped = () => existsSync(join(points, 'hits.jsonl'));
    await until('the second worker trains', () => isStopped() || running.child.exitCode !== null);
    if (isStopped()) return { run, step: second.told('step begins', run).at(-1)!, running };
  }
  throw new Error(`in ${MOST_RUNS} runs the second worker was given no step to train`);
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
