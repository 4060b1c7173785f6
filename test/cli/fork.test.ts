/** Refusals and plans of `temper train AGENT --from CHECKPOINT`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { changesKey, evalKey, manifestKey, runKey } from '../../store/layout.ts';
import { readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { writeAgent, writeModel } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';
import { madeManifest } from '../store/records/made-manifest.ts';

let project: string;
let agent: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  agent = await writeAgent(project);
  store = await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 2 });
  for (const step of [0, 1, 2]) await commit(0, step);
});

function commit(branch: number, step: number) {
  const manifest = madeManifest({ branch, step }, { adapterSha256: 'a'.repeat(64) });
  return store.publish(manifestKey({ run: 'demo', branch, step }), encodeJson(manifest));
}

const complaint = (from: string, ...args: string[]) => complaintIn(project, ['train', ...args, '--from', from]);

function runFile(config: RunConfig): Uint8Array {
  const { parent } = config;
  return encodeJson({ schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: {}, parent });
}

async function plan(source: string, flags: Record<string, string> = {}): Promise<RunConfig> {
  const given = Object.entries({ run: 'new', ...flags }).flatMap(([name, value]) => [`--${name}`, value]);
  return (await planTrain(contextOf(trainCommand, project, [agent, '--from', source, ...given]), 'estimate')).config;
}

const fork = (source: string, ...flags: string[]) => complaint(source, agent, '--run', 'new', ...flags);

describe('refuses', () => {
  test.each([
    ['demo@last', 'must be RUN, RUN@STEP, RUN@latest, RUN@best, RUN@production or RUN~BRANCH@STEP, got "demo@last"'],
    ['nope@1', 'no run nope in the store file://PROJECT/.temper/store (it has demo); start it with temper train'],
    ['demo@7', 'demo@7 is not committed (the newest before it is demo@2); pass that, or demo@latest'],
    ['demo~1@1', 'demo~1@1 is not committed'],
    ['demo@best', 'no checkpoint of demo has been evaluated; pass demo@latest, or a step'],
    ['demo@1 --group-size 1', '--group-size must be at least 2'],
    ['demo@1 --lora-rank 8', '--lora-rank must stay 16 (the run continues the adapter of demo@1), got 8; leave it out'],
    // Before a model of the hub is asked for.
    ['demo@1 --base-model nobody/nothing --lora-rank 8', '--lora-rank must stay 16'],
    ['demo@1 --base-model nobody/nothing --judge openai/gpt-5', '--judge'],
    ['demo@1 --adapter ./mine', '--from and --adapter exclude each other; leave one of them out'],
    ['demo@1 --warm-start chats.jsonl', '--from and --warm-start exclude each other; leave one of them out'],
    ['demo@1 --epochs 3', '--epochs has no effect on an agent that is played; pass --steps'],
  ])('temper train --from %s', async (line, message) => {
    const [source = '', ...flags] = line.split(' ');
    expect(await fork(source, ...flags)).toContain(message);
  });

  test('a fork without a name, with an agent or with that of the working folder', async () => {
    for (const words of [[agent], []])
      expect(await complaint('demo@1', ...words)).toContain(
        '--run is missing; pass --run NAME, the name of the new run',
      );
  });

  test('a name in use, the parent itself included', async () => {
    const parent = await readCheckpoint(store, { run: 'demo', branch: 0, step: 1 });
    const hash = parent?.manifestSha256 ?? '';
    expect((await complaint('demo@1', agent, '--run', 'demo')).replace(hash, 'HASH')).toContain(
      'the run demo exists with another configuration (recorded → requested): parent: null → "demo@1, manifest HASH"',
    );
  });

  test('another base model', async () => {
    const folder = await writeModel(join(project, 'other'), ['config.json', 'm.safetensors', 'chat_template.jinja']);
    expect(await fork('demo@1', '--base-model', folder)).toContain(
      '--base-model must be pocket (the run continues the adapter of demo@1), got other; pass --base-model pocket',
    );
  });
});

describe('plans', () => {
  test("the parent's configuration with what was changed, and the checkpoint with its hashes", async () => {
    const recorded = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', steps: 2 });
    const parent = await readCheckpoint(store, { run: 'demo', branch: 0, step: 1 });
    expect(await plan('demo@1', { steps: '5' })).toEqual({ ...recorded, run: 'new', steps: 5, parent });
  });

  test('separate rows of a parent stay separate, unless the fork is asked for trees', async () => {
    const config = defaultRunConfig({ run: 'old', agent: 'guess', baseModel: 'pocket', train: { packing: 'rows' } });
    await store.publish(runKey('old'), runFile(config));
    const manifest = madeManifest({ branch: 0, step: 0 }, { adapterSha256: 'a'.repeat(64) });
    await store.publish(manifestKey({ run: 'old', branch: 0, step: 0 }), encodeJson(manifest));
    expect((await plan('old@0')).train).toEqual(config.train);
    expect((await plan('old@0', { packing: 'tree' })).train).toEqual({ ...config.train, packing: 'tree' });
  });

  test('what was set by then in its parent, and nothing of what was set later', async () => {
    const set = (step: number, setting: string, to: number) => ({
      setting,
      from: 1,
      to,
      branch: 0,
      step,
      reason: null,
    });
    const files = [[set(1, 'groupSize', 4), set(2, 'temperature', 0.5)], [set(3, 'groupSize', 6)]];
    for (const [index, changes] of files.entries())
      await store.publish(changesKey('demo', index + 1), encodeJson({ schema: 1, changes }));
    expect(await plan('demo@0')).toMatchObject({ groupSize: 8, rollout: { temperature: 1 } });
    expect(await plan('demo@1')).toMatchObject({ groupSize: 4, rollout: { temperature: 1 } });
    const latest = await plan('demo@latest', { temperature: '0.7' });
    expect(latest).toMatchObject({ groupSize: 4, rollout: { temperature: 0.7 } });
    await store.publish(runKey('new'), runFile(latest));
    await commit(0, 3);
    expect(await plan('demo@latest', { temperature: '0.7' })).toEqual(latest);
  });

  test('from the newest commit of the branch that the run is on', async () => {
    expect((await plan('demo@latest')).parent).toMatchObject({ run: 'demo', branch: 0, step: 2 });
    expect((await plan('demo')).parent).toMatchObject({ run: 'demo', branch: 0, step: 2 });
  });

  test('from the commit with the best evaluation', async () => {
    for (const [step, reward] of [0.25, 0.75, 0.5].entries()) {
      const evaluation = { attempts: 2, failed: 0, reward, metrics: {}, rolloutsSha256: 'b'.repeat(64) };
      await store.publish(
        evalKey({ run: 'demo', branch: 0, step }),
        encodeJson({ schema: 1, inputsSha256: 'd'.repeat(64), step, ...evaluation }),
      );
    }
    expect((await plan('demo@best')).parent).toMatchObject({ run: 'demo', branch: 0, step: 1 });
  });

  test('the same parent again for a fork that exists, though its parent went on', async () => {
    const config = await plan('demo@latest');
    await store.publish(runKey('new'), runFile(config));
    await commit(0, 3);
    expect((await plan('demo@latest')).parent?.step).toBe(2);
    await expect(plan('demo@3')).rejects.toThrow('the run new exists with another configuration');
  });

  test('a changed schedule with its own default', async () => {
    const config = await plan('demo@1', { 'learning-rate-schedule': 'linear' });
    expect(config.finalLearningRateShare).toBe(0.1);
  });

  test('the optimizer of its parent, or the other one', async () => {
    const { config } = (await readRun(store, 'demo'))!.file;
    const optimizer = { ...config.train.optimizer, kind: 'adamw_8bit' } as const;
    expect((await plan('demo@1', { optimizer: 'adamw_8bit' })).train).toEqual({ ...config.train, optimizer });
    await store.replace(runKey('demo'), runFile({ ...config, train: { ...config.train, optimizer } }));
    expect((await plan('demo@1')).train.optimizer).toEqual(optimizer);
    expect((await plan('demo@1', { optimizer: 'adamw' })).train).toEqual(config.train);
    await expect(plan('demo@1', { optimizer: 'sgd' })).rejects.toThrow(
      '--optimizer must be one of adamw, adamw_8bit, got "sgd"; pass --optimizer adamw',
    );
  });

  test('no loss that has no effect, and none that its parent was recorded with', async () => {
    await expect(plan('demo@1', { loss: 'ppo' })).rejects.toThrow('--loss ppo has no effect');
    const { config } = (await readRun(store, 'demo'))!.file;
    const loss = { name: 'ppo', epsilonLow: 0.2, epsilonHigh: 0.3, dualClip: 3 } as const;
    const recorded = { ...config, train: { ...config.train, loss } };
    await store.replace(runKey('demo'), runFile(recorded));
    expect((await plan('demo@1')).train.loss).toEqual(config.train.loss);
    expect((await plan('demo@1', { passes: '2' })).train).toMatchObject({ passes: 2, loss });
    await store.replace(runKey('demo'), runFile({ ...recorded, train: { ...recorded.train, passes: 2 } }));
    expect((await plan('demo@1')).train).toMatchObject({ passes: 2, loss });
    expect((await plan('demo@1', { passes: '1' })).train.loss).toEqual(config.train.loss);
  });

  test('options that belong to another one as long as that one stays', async () => {
    const { config } = (await readRun(store, 'demo'))!.file;
    const kl = { klCoefficient: 0.5, klAs: 'reward' } as const;
    const options = {
      reduction: 'constant',
      reductionTokens: 9,
      ...kl,
      overlongBuffer: 9,
      overlongPenalty: 2,
    } as const;
    await store.replace(runKey('demo'), runFile({ ...config, train: { ...config.train, ...options } }));
    expect((await plan('demo@1')).train).toEqual({ ...config.train, ...options });
    const without = { reduction: 'token', 'kl-coefficient': '0', 'overlong-buffer': '0' };
    expect((await plan('demo@1', without)).train).toEqual(config.train);
  });

  test("its parent's estimator of the divergence, and none where there is no longer one", async () => {
    const { config } = (await readRun(store, 'demo'))!.file;
    const weighed = { klCoefficient: 0.5, klEstimator: 'k3-ratio' } as const;
    await store.replace(runKey('demo'), runFile({ ...config, train: { ...config.train, ...weighed } }));
    expect((await plan('demo@1')).train).toEqual({ ...config.train, ...weighed });
    expect((await plan('demo@1', { 'kl-coefficient': '0' })).train).toEqual(config.train);
    const inReward = { klCoefficient: 0.5, klAs: 'reward' };
    expect((await plan('demo@1', { 'kl-as': 'reward' })).train).toEqual({ ...config.train, ...inReward });
    await store.replace(runKey('demo'), runFile({ ...config, train: { ...config.train, klCoefficient: 0.5 } }));
    expect((await plan('demo@1', { 'kl-coefficient': '0.2' })).train).toEqual({ ...config.train, klCoefficient: 0.2 });
    expect((await plan('demo@1', { 'kl-estimator': 'k3-ratio' })).train).toEqual({ ...config.train, ...weighed });
  });
});

test('show, runs and the report name the parent', async () => {
  const config = { ...(await plan('demo@1')), run: 'child' };
  await writeFixtureRun(project, { run: 'child', steps: 1 });
  await store.replace(runKey('child'), runFile(config));
  const { stdout } = await runCli(project, ['show', 'child']);
  expect(stdout).toContain('\nparent     demo@1\n');
  expect(JSON.parse((await runCli(project, ['show', 'child', '--json'])).stdout)).toMatchObject({
    row: { parent: 'demo@1' },
  });
  expect((await runCli(project, ['report', 'child', '--out', 'report.html'])).exitCode).toBe(0);
  expect(await readFile(join(project, 'report.html'), 'utf8')).toContain('"parent":"demo@1"');
});
