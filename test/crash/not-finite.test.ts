/** Numbers that are none, broken files, models and memory that do not do, really so: what a run says, and how it goes on. */
import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, inject, test } from 'vitest';
import { Project, ticTacToe, type Command } from '../stack.ts';
import { until } from '../until.ts';

const AGENT = ticTacToe();
const SIZE = ['--groups-per-step', '2', '--group-size', '8', '--eval-scenarios', '1', '--seed', '5'];
// Constant, so that what a step makes does not depend on how many there are.
const RATE = ['--learning-rate', '0.005', '--learning-rate-schedule', 'constant'];
const FLAGS = ['--base-model', 'pocket', ...RATE, ...SIZE];

/** Steps of a run that is to be met under way. */
const MANY = 1000;

const project = new Project({ folder: inject('project') });
/** While this file is there, the steps of a GPU worker have no room (short-of-memory/). */
const shortOfMemory = join(project.folder, 'short-of-memory');

afterAll(() => project.endCommands());

const temper = (...args: string[]) => project.run(...args);
const tell = async (...args: string[]) => (await project.done(...args)).trim();
const trainLine = (run: string, steps: number) => ['train', AGENT, '--run', run, '--steps', String(steps), ...FLAGS];
const isStepTold = (command: Command) => /^step +1\//m.test(command.stdout());

interface Shown {
  state: string;
  step: number;
  branch: number;
  lineage: unknown[];
  failure: string | null;
}

const show = (run: string) => project.stateOf<Shown>(run);

const commitsOf = (files: Record<string, string>, branch: number) =>
  Object.keys(files).filter((file) => new RegExp(`^${branch}/steps/\\d+/manifest\\.json$`).test(file)).length;
const adapterOf = (files: Record<string, string>, branch: number, step: number) =>
  files[`${branch}/checkpoints/${step}/adapter/adapter_model.safetensors`];

test('an update beyond numbers ends a run at its last good step; it goes back, is trained anew, and the old branch stays', async () => {
  const training = project.start(...trainLine('beyond', MANY));
  await until('the first step is told', () => isStepTold(training));
  await tell('set', 'beyond', 'learningRate=1e18');
  const { code, stderr } = await training.ended;

  expect(code, stderr).toBe(1);
  const { step: good, ...failed } = await show('beyond');
  const cause = `LossNotFinite: step ${good + 1} of beyond: the updated weights must be finite, their norm is inf (learning rate 1e+18)`;
  expect(failed).toMatchObject({ state: 'failed', branch: 0 });
  expect(failed.failure).toContain(cause);
  expect(stderr).toContain(`the run beyond failed: ${cause}; roll back (temper rollback) and lower the learning rate`);
  expect(await tell('show', 'beyond')).toContain(cause);
  const before = project.committed('beyond');
  expect(before[`0/steps/${good + 1}/manifest.json`]).toBeUndefined();

  const back = ['--step', String(good - 1), '--set', 'learningRate=0.01', '--set', `steps=${good + 1}`];
  expect(await tell('rollback', 'beyond', ...back)).toContain(`beyond goes back from step ${good} to step ${good - 1}`);
  await tell(...trainLine('beyond', MANY));
  expect(await show('beyond')).toMatchObject({
    state: 'completed',
    step: good + 1,
    branch: 1,
    lineage: [{ branch: 1, fromBranch: 0, fromStep: good - 1 }],
    failure: null,
  });
  const after = project.committed('beyond');
  expect(Object.fromEntries(Object.keys(before).map((file) => [file, after[file]]))).toEqual(before);
  expect(commitsOf(after, 1)).toBeGreaterThan(0);
  expect(adapterOf(after, 0, good)).toMatch(/\w/);
  expect(adapterOf(after, 1, good)).not.toBe(adapterOf(after, 0, good));
  expect(await tell('verify', 'beyond', '--no-recompute')).toContain('beyond is intact');
});

/** A blob of the step that a run rests after. */
function blobOf(run: string, step: number, part: 'adapter' | 'optimizer'): { key: string; file: string } {
  const { key } = (
    JSON.parse(readFileSync(project.manifest(run, step), 'utf8')) as Record<typeof part, { key: string }>
  )[part];
  return { key, file: project.path('store', key) };
}

function flipBit(file: string): void {
  const bytes = readFileSync(file);
  bytes[bytes.length - 9]! ^= 1;
  writeFileSync(file, bytes);
}

test('a broken adapter and a broken optimizer file end a run by name; with their bytes back it ends like an undisturbed one', async () => {
  const training = project.start(...trainLine('broken', MANY));
  await until('the first step is told', () => isStepTold(training));
  await tell('pause', 'broken');
  await expect.poll(async () => (await show('broken')).state, { timeout: 300_000 }).toBe('paused');
  const { step } = await show('broken');
  await tell('set', 'broken', `steps=${step + 2}`);
  await tell(...trainLine('whole', step + 2));

  const adapter = blobOf('broken', step, 'adapter');
  const whole = readFileSync(adapter.file);
  flipBit(adapter.file);
  await project.killGpuWorker();
  await tell('resume', 'broken');
  expectNamed(await training.ended, adapter.key);
  expect(await show('broken')).toMatchObject({ state: 'failed', step });

  writeFileSync(adapter.file, whole);
  const optimizer = blobOf('broken', step, 'optimizer');
  const state = readFileSync(optimizer.file);
  truncateSync(optimizer.file, state.length - 7);
  expectNamed(await temper(...trainLine('broken', MANY)), optimizer.key);

  writeFileSync(optimizer.file, state);
  await tell(...trainLine('broken', MANY));
  expect(await show('broken')).toMatchObject({ state: 'completed', step: step + 2, branch: 0, failure: null });
  expect(project.committed('broken')).toEqual(project.committed('whole'));
});

function expectNamed({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }, key: string) {
  expect(code, stdout + stderr).toBe(1);
  expect(stderr).toContain('StoreCorrupt');
  expect(stderr).toContain(key);
  expect(stderr).toContain('restore it');
}

test('a base model that cannot be used ends its run at once, with the reason and what to take instead', async () => {
  const folder = join(project.folder, 'gpt2');
  cpSync(fileURLToPath(new URL('../../gpu-worker/temper_gpu/pocket/model', import.meta.url)), folder, {
    recursive: true,
  });
  const config = { model_type: 'gpt2', architectures: ['GPT2LMHeadModel'], n_embd: 64, n_layer: 2, n_head: 4 };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, n_positions: 512, vocab_size: 264 }));
  const { code, stdout, stderr } = await temper('train', AGENT, '--run', 'gpt2', ...SIZE, '--base-model', folder);
  expect(code, stdout + stderr).toBe(1);
  expect(stderr).toContain(
    'the run gpt2 failed: BadConfig: model gpt2 must be a plain text decoder, but GPT2LMHeadModel has no linear layers that an adapter could target; use a Qwen2, Qwen3, Llama or Mistral model',
  );
});

test('a step that has no room in memory ends its run with figures and the flag to lower, and is made once there is room', async () => {
  writeFileSync(shortOfMemory, '');
  const { code, stdout, stderr } = await temper(...trainLine('short', 1));
  expect(code, stdout + stderr).toBe(1);
  expect(stderr).toMatch(
    /the run short failed: OutOfMemory: a step must fit into memory: .*tried to allocate \d+ bytes.* GiB are free on this host, 3 times in a row; lower --micro-batch-tokens \(now 16384\): temper train AGENT --from short@0/,
  );
  expect(await show('short')).toMatchObject({ state: 'failed', step: 0 });

  rmSync(shortOfMemory);
  await tell(...trainLine('short', 1));
  expect(await show('short')).toMatchObject({ state: 'completed', step: 1, failure: null });
});

interface Waiting {
  pendingActivities: { activity: string; reason: string | null }[];
}

/** Stopped while attempts are played: its port takes connections, and nothing answers. */
async function freezeEngine(run: string): Promise<number> {
  for (;;) {
    const pid = project.pid('gpu-worker');
    process.kill(pid, 'SIGSTOP');
    const { pendingActivities: pending } = await project.show<Waiting>(run);
    if (pending.some(({ activity }) => activity === 'rollout')) return pid;
    process.kill(pid, 'SIGCONT');
  }
}

test('an engine that stays away: the run and whoever watches it say what they wait for, and it goes on once it is back', async () => {
  const calls = ['--call-timeout-ms', '1000', '--call-retry-budget-ms', '1000'];
  const training = project.start(...trainLine('away', MANY), ...calls);
  await until('the first step is told', () => isStepTold(training));
  const watching = project.start('show', 'away', '--follow');
  const pid = await freezeEngine('away');
  try {
    const told = /waiting for rollout: .*EngineFailed: .*; start it, or correct its address/;
    for (const { stdout } of [training, watching]) await until('it is told', () => told.test(stdout()));
    expect(await tell('show', 'away')).toMatch(/^pending .*rollout, attempt \d+ .*EngineFailed: /m);
    expect(await show('away')).toMatchObject({ state: 'running', failure: null });
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const { step } = await show('away');
  await expect.poll(async () => (await show('away')).step, { timeout: 300_000 }).toBeGreaterThan(step);
  await tell('stop', 'away');
  expect(await training.ended).toMatchObject({ code: 0 });
  expect(await watching.ended).toMatchObject({ code: 0 });
});
