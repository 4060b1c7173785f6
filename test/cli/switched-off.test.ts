/** Options that a run would inherit, of its parent or of its project, are switched off by flags. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { forkCommand } from '../../cli/fork/command.ts';
import { planFork } from '../../cli/fork/plan-fork.ts';
import { flagText } from '../../cli/planning/project-flags.ts';
import { planTrain } from '../../cli/train/plan-train.ts';
import { trainCommand } from '../../cli/train/command.ts';
import type { RunOptions } from '../../core/run-defaults.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { defineConfig, type TemperConfig } from '../../workers/config/config.ts';
import { makeRun } from '../store/records/made-run.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf } from './run-cli.ts';

/** Weights with which a correction has an effect. */
const BFLOAT16 = ['--dtype', 'bfloat16'];

let project: string;

beforeEach(async () => {
  project = await temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
});

async function forked(train: RunOptions['train'], ...flags: string[]) {
  await makeRun(await openStore(join(project, '.temper', 'store')), { train });
  const words = ['demo@2', 'agent.ts', '--run', 'new', ...BFLOAT16, ...flags];
  return (await planFork(contextOf(forkCommand, project, words))).config;
}

test('a fork drops what its parent has', async () => {
  const parent = { correction: 'geometric', leaveOneOut: true, passes: 2, loss: { name: 'ppo' } } as const;
  const flags = ['--correction', 'none', '--no-leave-one-out', '--dual-clip', 'none'];
  expect((await forked(parent)).train).toMatchObject({ ...parent, correctionCap: 1.01, loss: { dualClip: 3 } });
  const { train } = await forked(parent, ...flags);
  expect(train).toMatchObject({ leaveOneOut: false, correction: 'none', loss: { name: 'ppo', dualClip: null } });
  expect(train).not.toHaveProperty('correctionCap');
});

/** The plan of the run that `train` of temporal.config.ts and flags make. */
async function planned(train: TemperConfig['train'], ...flags: string[]) {
  const configured = flagText(defineConfig({ train }));
  const words = [...configured, 'agent.ts', '--base-model', 'pocket', ...BFLOAT16, ...flags];
  return (await planTrain(contextOf(trainCommand, project, words))).config;
}

test.each<[TemperConfig['train'], string[]]>([
  [{ 'leave-one-out': true }, ['--no-leave-one-out']],
  [{ 'lora-rslora': true, 'lora-dora': true }, ['--no-lora-rslora', '--no-lora-dora']],
  [{ 'full-fine-tuning': true }, ['--no-full-fine-tuning']],
  [{ correction: 'token-mask' }, ['--correction', 'none']],
  [{ 'learning-rate-schedule': 'cosine', 'learning-rate-restarts': 2 }, ['--learning-rate-restarts', '0']],
])('a flag wins over train of temporal.config.ts: %j, %j', async (train, flags) => {
  const without = Object.fromEntries(Object.entries(train).filter(([name]) => name === 'learning-rate-schedule'));
  const given = await planned(train);
  const plain = await planned(without);
  expect(given).not.toEqual(plain);
  expect(await planned(train, ...flags)).toEqual(plain);
});

test('a clip of ppo is switched off for other losses, too', async () => {
  const train = { passes: 2, loss: 'ppo', 'dual-clip': 4 };
  expect((await planned(train, '--dual-clip', 'none')).train.loss).toMatchObject({ name: 'ppo', dualClip: null });
  const { loss } = (await planned(train, '--loss', 'gspo', '--dual-clip', 'none')).train;
  expect(loss).toEqual({ name: 'gspo', epsilonLow: 3e-4, epsilonHigh: 4e-4 });
});

test('the later one of both counts, and a switch that nothing else sets has no opposite', async () => {
  const both = ['--leave-one-out', '--no-leave-one-out'];
  expect((await planned({}, ...both)).train.leaveOneOut).toBe(false);
  expect((await planned({}, ...both.toReversed())).train.leaveOneOut).toBe(true);
  const refused = (...flags: string[]) =>
    complaintIn(project, ['train', 'agent.ts', '--base-model', 'pocket', ...flags]);
  expect(await refused('--no-load-in-4bit')).toContain('unknown flag --no-load-in-4bit');
  expect(await refused('--no-leave-one-out=yes')).toContain('--no-leave-one-out takes no value');
  expect(await refused('--steps', 'none')).toContain('--steps must be a whole number, got "none"');
});

test('what a run continues stays: its weights and its own shape', async () => {
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { run: 'full', train: { lora: null } });
  await makeRun(store, { run: 'scaled', train: { lora: { dora: true } } });
  const refused = (parent: string, flag: string) =>
    complaintIn(project, ['fork', parent, 'agent.ts', '--run', 'new', flag]);
  expect(await refused('full@2', '--no-full-fine-tuning')).toContain('--full-fine-tuning must stay on');
  expect(await refused('scaled@2', '--no-lora-dora')).toContain('--lora-dora must stay');
});
