/**
 * Two GPU workers on one queue. One is frozen in the middle of train and thawed after the other finished the step: one
 * commit, and the late one says that it discarded its work. Frozen while idle it holds the run up, and does nothing.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GPU_WORKER_FOLDER, projectFolders } from '../../workers/folders.ts';
import { readStackFile } from '../../workers/local-stack/stack-file.ts';
import { openTools } from '../run/tools.ts';
import { Project, until, type Running } from './project.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 5;
const FLAGS = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '4', '--group-size', '16'];
const MORE = ['--eval-scenarios', '1', '--seed', '5', '--learning-rate', '4e-3', '--replacement-rounds', '0'];
/** Whoever was handed a task while it stood still answers at once. */
const THAWED_MS = 3000;

const project = new Project();
let stack: Running;
let second: ChildProcess;

const secondLog = () => project.log('second-gpu-worker');
const manifest = (run: string, step: number) =>
  project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');

function told(log: Record<string, unknown>[], message: string, run: string): number[] {
  return log.filter(({ msg, run: of }) => msg === message && of === run).map(({ step }) => Number(step));
}

async function startSecond(): Promise<ChildProcess> {
  const folders = projectFolders(project.folder);
  const ports = readStackFile(folders.stackFile)?.ports;
  const flags = {
    '--store': pathToFileURL(folders.store).href,
    '--port': '0',
    '--temporal-address': `127.0.0.1:${ports?.temporal}`,
    '--namespace': 'default',
    '--queue': 'gpu',
  };
  const file = openSync(join(folders.logs, 'second-gpu-worker.jsonl'), 'w');
  const child = spawn((await openTools()).python, ['-m', 'temper_gpu', ...Object.entries(flags).flat(), '--leash'], {
    cwd: GPU_WORKER_FOLDER,
    stdio: ['pipe', file, 'inherit'],
    env: { ...process.env, PYTHONUNBUFFERED: '1', TEMPER_ENGINE_KEY: readFileSync(folders.engineKey, 'utf8').trim() },
  });
  closeSync(file);
  await until('the second GPU worker polls', () => secondLog().some(({ msg }) => msg === 'polling'), 120_000);
  return child;
}

beforeAll(async () => {
  stack = project.start('dev', '--agent', AGENT);
  const isUp = () => stack.output().includes('Ctrl-C ends it') || stack.child.exitCode !== null;
  await until('the stack runs', isUp, 180_000);
  second = await startSecond();
});

afterAll(async () => {
  second.kill('SIGCONT');
  second.kill('SIGTERM');
  if (second.exitCode === null) await once(second, 'exit');
  stack.child.kill('SIGINT');
  await stack.ended;
  await project.close();
});

/** Frozen at the beginning of a step that it has not committed; which of the two gets a step is the server's choice. */
async function freezeInTrain(run: string): Promise<number> {
  for (let seen = 0; ;) {
    await until('the second worker trains', () => told(secondLog(), 'step begins', run).length > seen);
    second.kill('SIGSTOP');
    const step = told(secondLog(), 'step begins', run).at(-1)!;
    if (step > 0 && !existsSync(manifest(run, step))) return step;
    second.kill('SIGCONT');
    seen = told(secondLog(), 'step begins', run).length;
  }
}

test('the late worker discards its step, an idle frozen one does nothing, and the bytes are the undisturbed run’s', async () => {
  const running = project.start('train', AGENT, '--run', 'frozen', ...FLAGS, ...MORE);
  const step = await freezeInTrain('frozen');
  await until('the other worker commits the step', () => existsSync(manifest('frozen', step)));
  const winners = readFileSync(manifest('frozen', step));
  second.kill('SIGCONT');
  await until('the late one says so', () => told(secondLog(), 'step discarded', 'frozen').includes(step));

  const begun = told(secondLog(), 'step begins', 'frozen').length;
  second.kill('SIGSTOP');
  const { code, output } = await running.ended;
  expect(code, output).toBe(0);
  second.kill('SIGCONT');
  await sleep(THAWED_MS);
  expect(told(secondLog(), 'step begins', 'frozen')).toHaveLength(begun);

  const commits = [...secondLog(), ...project.log('gpu-worker')].filter(({ found }) => found === false);
  const steps = told(commits, 'step committed', 'frozen').toSorted((a, b) => a - b);
  expect(steps).toEqual(Array.from({ length: STEPS + 1 }, (_, each) => each));
  expect(readFileSync(manifest('frozen', step)).equals(winners)).toBe(true);

  expect((await project.run('train', AGENT, '--run', 'undisturbed', ...FLAGS, ...MORE)).code).toBe(0);
  expect(project.committed('frozen')).toEqual(project.committed('undisturbed'));
});
