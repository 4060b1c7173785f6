/** `--from-production` of `temper train` and `temper schedule create`: plans, and what is refused. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey } from '../../store/layout.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readRatedConversations } from '../../store/records/production/feedback.ts';
import type { Store } from '../../store/store.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { rate, record, recordedCall } from '../store/records/recorded.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';

let project: string;
let agent: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  agent = await writeAgent(project);
  store = await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 2 });
  const manifest = madeManifest({ branch: 0, step: 2 }, { adapterSha256: 'a'.repeat(64) });
  await store.publish(manifestKey({ run: 'demo', branch: 0, step: 2 }), encodeJson(manifest));
});

async function parentOf(step: number) {
  const { manifestSha256 } = (await readCheckpoint(store, { run: 'demo', branch: 0, step }))!;
  return { step, manifestSha256 };
}

async function rateNew(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const turn = { call: recordedCall('a'.repeat(64)), policy: 'demo@2' };
    await rate(store, 'demo', (await record(store, 'demo', [turn])).conversation, index);
  }
}

const LEARN = '--from-production demo'.split(' ');
const train = (...flags: string[]) => complaintIn(project, ['train', agent, ...flags]);
const plan = (...flags: string[]) => planTrain(contextOf(trainCommand, project, [agent, ...LEARN, ...flags]), 'now');

describe('a run', () => {
  test('trains what has feedback, from the checkpoint that answered, with its settings', async () => {
    await rateNew(5);
    // With --from-production.
    const { config } = await plan('--groups-per-step', '2', '--epochs', '2', '--learning-rate', '0.01');
    expect(config).toMatchObject({
      run: 'demo-production',
      agent: 'guess',
      baseModel: 'pocket',
      parent: { run: 'demo', step: 2 },
      steps: 6,
      learningRate: 0.01,
      judge: null,
      train: { baseline: 'rae' },
      production: { run: 'demo', conversations: 5, samplers: [{ step: 2, age: 0 }], leftOut: {} },
    });
    const rated = await readRatedConversations(store, 'demo');
    expect(new Set(rated.map(({ trainedBy }) => trainedBy))).toEqual(new Set(['demo-production']));
    // The same line again, before the run has begun, finds its conversations.
    expect((await plan('--groups-per-step', '2', '--epochs', '2', '--learning-rate', '0.01')).config).toEqual(config);
  });

  test('leaves out answers of a policy that is too old for it, and starts where it is told', async () => {
    await rateNew(1);
    const later = madeManifest({ branch: 0, step: 3 }, { adapterSha256: 'b'.repeat(64), parent: await parentOf(2) });
    await store.publish(manifestKey({ run: 'demo', branch: 0, step: 3 }), encodeJson(later));
    const { config } = await plan('--from', 'demo@3', '--run', 'close', '--max-policy-age', '1');
    expect(config).toMatchObject({ parent: { step: 3 }, production: { samplers: [{ step: 2, age: 1 }] } });
    await rateNew(1);
    expect(
      (await runCli(project, ['train', agent, ...LEARN, '--from', 'demo@3', '--max-policy-age', '0'])).stderr,
    ).toBe(
      'temper: demo has 0 new conversations with feedback that can be trained (left out: 1 answered by a policy that is too old or unrelated), at least 1 are asked for; wait for more feedback, or lower --at-least',
    );
  });

  test('is refused with the numbers if there are too few, and nothing is closed', async () => {
    await rateNew(2);
    const { exitCode, stderr } = await runCli(project, ['train', agent, ...LEARN, '--at-least', '3']);
    expect([exitCode, stderr]).toEqual([
      1,
      'temper: demo has 2 new conversations with feedback that can be trained, at least 3 are asked for; wait for more feedback, or lower --at-least',
    ]);
    expect((await readRatedConversations(store, 'demo')).map(({ trainedBy }) => trainedBy)).toEqual([null, null]);
  });

  test('of a run that was never recorded', async () => {
    expect(await train('--from-production', 'nope')).toMatch(
      /^temper: no conversation of nope was recorded in .*; serve it with temper serve nope --record, or name another run$/,
    );
  });

  test.each([
    ['--advantage-baseline group', '--advantage-baseline must be rae with recorded conversations'],
    ['--steps 5', '--steps has no effect with --from-production'],
    ['--warm-start chats.jsonl', '--warm-start has no effect with --from-production'],
    ['--epochs 0', '--epochs must be a whole number of at least 1'],
  ])('with %s, and nothing is closed', async (flags, reason) => {
    await rateNew(1);
    expect(await train(...LEARN, ...flags.split(' '))).toContain(`temper: ${reason}`);
    expect((await readRatedConversations(store, 'demo'))[0]!.trainedBy).toBeNull();
  });

  test('without conversations, with a flag of theirs', async () => {
    expect(await train('--base-model', 'pocket', '--at-least', '2')).toContain(
      'temper: --at-least has no effect without --from-production; pass both, or leave it out',
    );
  });

  test('settings of the project about played attempts do not apply to it', async () => {
    await writeFile(join(project, 'temporal.config.ts'), `export default { train: { 'lora-rank': 4, steps: 40 } };`);
    const taken = (...words: string[]) =>
      trainCommand.projectFlags!(contextOf(trainCommand, project, [agent, ...words]));
    expect(await taken()).toEqual(['--lora-rank=4', '--steps=40']);
    expect(await taken(...LEARN)).toEqual(['--lora-rank=4']);
    // A run that continues an agent's has that run's options.
    expect(await taken('--from', 'demo@2')).toEqual([]);
  });
});

describe('a schedule', () => {
  const create = (...flags: string[]) => {
    const context = contextOf(scheduleCreateCommand, project, [agent, '--name', 'nightly', '--every', '1d', ...flags]);
    return planSchedule(context);
  };

  test('starts from the checkpoint that serves; its firings choose', async () => {
    await rateNew(1);
    const given = '--from-production demo --at-least 200 --epochs 2 --max-policy-age 9'.split(' ');
    const { config, begins, production } = await create(...given);
    expect(begins).toMatchObject({ run: 'demo', step: 2 });
    expect(production).toEqual({ run: 'demo', atLeast: 200, maxPolicyAge: 9, epochs: 2 });
    expect((await create(...LEARN)).production).toEqual({ run: 'demo', atLeast: 1, maxPolicyAge: 32, epochs: 1 });
    expect(config).toMatchObject({ run: 'nightly', baseModel: 'pocket', parent: null, train: { baseline: 'rae' } });
    expect(config).not.toHaveProperty('production');
  });

  test('with what no firing could train is refused', async () => {
    await rateNew(1);
    await expect(create(...LEARN, '--advantage-baseline', 'group')).rejects.toThrow(/must be rae/);
    await expect(create(...LEARN, '--steps', '5')).rejects.toThrow(/--steps has no effect/);
  });
});
