/** Mistakes that a person can make with examples: told before anything is started, and nothing is left behind. */
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { manifestKey, runKey } from '../../store/layout.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import type { Store } from '../../store/store.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { write, writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf } from './run-cli.ts';

let project: string;

beforeEach(async () => {
  project = temporaryProject();
  await write(join(project, 'chats.jsonl'), chats(25));
});

const chat = (content: string) =>
  JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
const chats = (count: number) => Array.from({ length: count }, (_, index) => `${chat(`${index}`)}\n`).join('');
const plan = (...flags: string[]) =>
  planTrain(contextOf(trainCommand, project, ['chats.jsonl', '--base-model', 'pocket', ...flags]), 'estimate');
const sft = (...flags: string[]) => complaintIn(project, ['train', ...flags, '--base-model', 'pocket']);
const train = async (...flags: string[]) =>
  complaintIn(project, ['train', await writeAgent(project), '--base-model', 'pocket', ...flags]);

describe('a file of examples', () => {
  test('is a run of its own name, of one epoch over what is not held out', async () => {
    const { config, agentFile } = await plan();
    expect(config).toMatchObject({ run: 'chats', agent: 'temper-sft', steps: 2 });
    expect(config.supervised).toMatchObject({ examples: 25, heldOut: 2, examplesPerStep: 16, turns: 'all' });
    expect(Object.keys(config.supervised!)).not.toContain('steps');
    expect(agentFile).toMatch(/supervised-agent\.[tj]s$/);
    expect((await plan('--epochs', '2.5', '--examples-per-step', '4')).config.steps).toBe(15);
    expect((await plan('--steps', '7', '--held-out-examples', '5')).config).toMatchObject({
      steps: 7,
      supervised: { heldOut: 5 },
    });
  });

  test('that cannot be read, or has a bad line', async () => {
    await write(join(project, 'bad.jsonl'), `${chats(3)}{"messages": [\n`);
    await write(join(project, 'few.jsonl'), chats(1));
    expect(await sft('bad.jsonl')).toMatch(/^temper: line 4 of bad\.jsonl must be JSON, but .*; correct the line$/);
    expect(await sft('few.jsonl')).toContain('few.jsonl must have at least two examples (one is held out), got 1');
    expect(await sft('none.jsonl')).toContain('the examples must be a file that can be read, got PROJECT/none.jsonl');
  });

  test('of a name that no run can have', async () => {
    await write(join(project, '-.jsonl'), chats(3));
    expect(await sft(join(project, '-.jsonl'))).toContain('the run must have a name, and none can be made from -');
  });
});

describe('flags of examples', () => {
  test.each([
    ['--steps 3 --epochs 2', '--epochs and --steps exclude each other; leave one of them out'],
    ['--epochs 0', '--epochs must be greater than 0, got 0; pass --epochs 1'],
    ['--group-size 4', '--group-size has no effect on a file of chats (no attempt is played); leave it out'],
    ['--warm-start chats.jsonl', '--warm-start has no effect on a file of chats (no attempt is played)'],
    ['--turns some', '--turns must be one of all, last, got "some"; pass --turns all'],
    [
      '--held-out-examples 25',
      '--held-out-examples must be fewer than the examples, got 25; lower --held-out-examples to 24',
    ],
  ])('temper train chats.jsonl %s', async (flags, message) => {
    expect(await sft('chats.jsonl', ...flags.split(' '))).toContain(`temper: ${message}`);
  });

  test('a warm start leaves steps for the agent', async () => {
    expect(await train('--warm-start', 'chats.jsonl', '--steps', '2')).toMatch(
      /^temper: --warm-start-steps must be fewer than steps \(the run plays its agent after them\), got 2; lower --warm-start-steps to 1, or raise steps/,
    );
    expect(await train('--turns', 'last')).toContain('--turns has no effect without --warm');
  });

  test('a warm start is one epoch where nobody says otherwise', async () => {
    const agent = await writeAgent(project);
    const words = [agent, '--base-model', 'pocket', '--warm-start', 'chats.jsonl', '--warm-start-learning-rate', '0.5'];
    const { config } = await planTrain(contextOf(trainCommand, project, words), 'estimate');
    expect(config.supervised).toMatchObject({ steps: 2, learningRate: 0.5 });
    expect(config.agent).not.toBe('temper-sft');
  });

  test('a run of this name with other examples is told by its flags', async () => {
    const store = await openStore(join(project, '.temper', 'store'));
    const { config } = await plan();
    const file = { schema: 1, config, agentCodeSha256: 'a', versions: {}, parent: null };
    await store.publish(runKey('chats'), encodeJson(file));
    expect((await plan()).existing?.file.config.run).toBe('chats');
    await expect(plan('--turns', 'last')).rejects.toThrow(
      '(recorded → requested): --turns: "all" → "last"; pass another --run',
    );
  });

  test('of what train of temporal.config.ts gives to every run, those apply that such a run has', async () => {
    await write(
      join(project, 'temporal.config.ts'),
      `export default { train: { 'lora-rank': 4, 'group-size': 6, steps: 40 } };`,
    );
    expect(await trainCommand.projectFlags!(contextOf(trainCommand, project, ['chats.jsonl']))).toEqual([
      '--lora-rank=4',
    ]);
  });
});

describe('--from', () => {
  let store: Store;
  const from = async (...flags: string[]) =>
    (await planTrain(contextOf(trainCommand, project, ['chats.jsonl', '--from', ...flags]), 'estimate')).config;
  const refused = (...flags: string[]) => complaintIn(project, ['train', 'chats.jsonl', '--from', ...flags]);
  const commit = (step: number) =>
    store.publish(
      manifestKey({ run: 'demo', branch: 0, step }),
      encodeJson(madeManifest({ branch: 0, step }, { adapterSha256: `${step}`.repeat(64) })),
    );

  beforeEach(async () => {
    store = await openStore(join(project, '.temper', 'store'));
    await begin({ train: { lora: { rank: 4 }, packing: 'rows', passes: 2, klCoefficient: 0.1 } });
    for (const step of [0, 1, 2]) await commit(step);
  });

  async function begin(options: Partial<RunOptions>) {
    const config = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', ...options });
    const file = { schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: {}, parent: null };
    await store.replace(runKey('demo'), encodeJson(file));
  }

  test('begins with a checkpoint, in its shape, and has none of the options that examples make nothing of', async () => {
    const optimizer = { kind: 'adamw_8bit', beta1: 0.8 } as const;
    const rollout = { temperature: 0.5, chatTemplateKwargs: { enable_thinking: false } };
    const kept = { lora: { rank: 4 }, packing: 'rows', microBatchTokens: 99, optimizer } as const;
    await begin({ rollout, maxStaleness: 1, learningRate: 0.5, train: { ...kept, passes: 2, klCoefficient: 0.1 } });
    const parent = await readCheckpoint(store, { run: 'demo', branch: 0, step: 1 });
    const { supervised } = (await plan()).config;
    const names = { run: 'chats', agent: 'temper-sft', baseModel: 'pocket' };
    expect(await from('demo@1', '--steps', '5')).toEqual(
      defaultRunConfig({ ...names, steps: 5, parent, supervised: supervised!, rollout, train: kept }),
    );
  });

  test('goes on with the checkpoint that it began with, though its parent went on', async () => {
    const config = await from('demo~0');
    expect(config.parent).toMatchObject({ run: 'demo', branch: 0, step: 2 });
    const file = { schema: 1, config, agentCodeSha256: 'a', versions: {}, parent: config.parent };
    await store.publish(runKey('chats'), encodeJson(file));
    await commit(3);
    expect(await from('demo~0@latest')).toEqual(config);
    await expect(from('demo@3')).rejects.toThrow('(recorded → requested): parent: "demo@2, manifest ');
  });

  test('continues all weights as all weights', async () => {
    await begin({ train: { lora: null } });
    expect((await from('demo@1')).train.lora).toBeNull();
    expect(await refused('demo@1', '--lora-rank', '8')).toContain('--full-fine-tuning must stay on');
  });

  test.each([
    ['demo@1 --lora-rank 8', '--lora-rank must stay 4 (the run continues the adapter of demo@1), got 8; leave it out'],
    ['demo@1 --base-model pocket-tools', 'must be pocket (the run continues the adapter of demo@1), got pocket-tools;'],
    ['demo@1 --full-fine-tuning', '--full-fine-tuning must stay off (the run continues the adapter of demo@1); leave'],
    ['demo@1 --adapter x', '--from and --adapter exclude each other; leave one of them out'],
  ])('temper train chats.jsonl --from %s', async (flags, message) => {
    expect(await refused(...flags.split(' '))).toContain(message);
  });
});
