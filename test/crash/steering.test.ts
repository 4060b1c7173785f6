/**
 * Steering as a person does it: real processes, the pocket model, real weights. And the control of every curve: where
 * nothing is learned, nothing changes.
 */
import { afterAll, expect, inject, test } from 'vitest';
import { linesOf, Project, succeed, ticTacToe } from '../stack.ts';
import { until } from '../until.ts';

const AGENT = ticTacToe();
const SIZE = ['--steps', '40', '--groups-per-step', '2', '--group-size', '6', '--eval-scenarios', '4'];
const TRAIN = ['train', AGENT, '--run', 'steered', '--base-model', 'pocket', '--learning-rate', '0.005', ...SIZE];

const project = new Project({ folder: inject('project') });
afterAll(() => project.endCommands());

const show = (run = 'steered') => project.stateOf<Record<string, unknown>>(run);
const tell = async (...args: string[]) => (await project.done(...args)).trim();

test('a run is paused, changed and resumed; when it has ended it goes back, and the old branch stays', async () => {
  const training = project.start(...TRAIN);
  await until('the first step is told', () => /^step +1\//m.test(training.stdout()), 600_000);
  expect(await tell('pause', 'steered', '--reason', 'lunch')).toMatch(
    /^steered pauses after step \d+; continue it with temper resume steered$/,
  );
  // On a busy machine, the answer may come before the state is written.
  let paused = await show();
  while (paused['state'] !== 'paused') paused = await show();
  const last = Number(paused['step']);
  expect(paused['pause']).toMatchObject({ reason: 'lunch' });
  expect(await project.run('set', 'steered', `steps=${last}`)).toMatchObject({
    code: 2,
    stderr: `temper: steps must be more than the ${last} that are done, got ${last}; pass more, or end the run with temper stop\n`,
  });
  const set = await tell('set', 'steered', `steps=${last + 2}`, 'learningRate=0.001');
  expect(linesOf(set)).toEqual([
    `steered: learningRate 0.005 → 0.001 from step ${last + 1} on`,
    `steered: steps 40 → ${last + 2} from step ${last + 1} on`,
  ]);
  expect(await tell('resume', 'steered')).toBe('steered continues');
  await succeed(training.ended);
  expect(await show()).toMatchObject({ state: 'completed', step: last + 2, steps: last + 2, branch: 0 });

  const before = project.committed('steered');
  expect(await tell('rollback', 'steered', '--step', String(last), '--set', 'learningRate=0.01')).toContain(
    `steered goes back from step ${last + 2} to step ${last}`,
  );
  await tell(...TRAIN);
  expect(await show()).toMatchObject({
    state: 'completed',
    step: last + 2,
    branch: 1,
    lineage: [{ branch: 1, fromBranch: 0, fromStep: last }],
  });
  const after = project.committed('steered');
  expect(Object.fromEntries(Object.keys(before).map((file) => [file, after[file]]))).toEqual(before);
  for (const step of [last + 1, last + 2]) {
    const [old, anew] = [0, 1].map(
      (branch) => after[`${branch}/checkpoints/${step}/adapter/adapter_model.safetensors`],
    );
    expect(anew).toMatch(/\w/);
    expect(anew).not.toBe(old);
  }
  expect(await tell(...TRAIN)).toContain('the run steered is complete');
});

test('with a learning rate of 0 every checkpoint has the same weights', async () => {
  const steps = 4;
  const size = ['--steps', String(steps), '--groups-per-step', '4', '--group-size', '8', '--eval-scenarios', '16'];
  await tell('train', AGENT, '--run', 'flat', '--base-model', 'pocket', '--learning-rate', '0', ...size);

  const committed = project.committed('flat');
  const adapters = Array.from(
    { length: steps + 1 },
    (_, step) => committed[`0/checkpoints/${step}/adapter/adapter_model.safetensors`],
  );
  expect(adapters).not.toContain(undefined);
  expect(new Set(adapters).size).toBe(1);
  expect(await show('flat')).toMatchObject({ state: 'completed', step: steps, steps });
  const trained = Object.keys(committed).filter((file) => /^0\/steps\/[1-9]\/manifest\.json$/.test(file));
  expect(trained).toHaveLength(steps);
});
