/** `temper eval --judge`: the models' attempts are compared by the judge, scenario by scenario. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { judgeOutcomes, planJudging } from '../../cli/eval/judge-outcomes.ts';
import { summariseOutcomes } from '../../cli/eval/summarise.ts';
import { DEFAULT_ROLLOUT } from '../../core/rules/run-defaults.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import { playSingle } from '../../play/single-attempt.ts';
import { defineAgent, ruler } from '../../sdk/index.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { ScriptedAuthor } from './scenarios/scripted-author.ts';
import { startWriter } from './init-task/scripted-writer.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const scenarios = ['one', 'two', 'three'].map((id) => ({ id, task: `Write about ${id}.` }));
const { signal } = new AbortController();

let writer: ScriptedAuthor;
beforeAll(async () => {
  writer = await startWriter();
});
afterAll(() => writer.close());

/** Says one text; a null fails. */
const saying = (text: string | null): EngineConnection => ({
  url: 'http://engine.invalid',
  keyVariable: null,
  post: () => {
    const message = { role: 'assistant', content: text };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    return Promise.resolve({ status: 200, retryAfter: null, text: JSON.stringify({ id: 'x', choices }) });
  },
  close: () => Promise.resolve(),
});

test('each scenario’s attempts are scored together; a second evaluation asks nothing, and failed attempts count for nobody', async () => {
  const agent = defineAgent({
    name: 'writer',
    scenarios,
    reward: ruler({ judge: { baseUrl: writer.url, model: 'judge' }, rubric: 'Good words.' }),
    async rollout({ scenario, openai, model }) {
      const messages = [{ role: 'user' as const, content: scenario.task }];
      const { choices } = await openai.chat.completions.create({ model, messages });
      if (choices[0]?.message.content === 'fails') throw new Error('the rollout failed');
    },
  });
  const play = async (texts: readonly string[]): Promise<AttemptRecord[]> =>
    Promise.all(
      texts.map(async (text, attempt) => {
        const place = { seed: 1, branch: 0, step: 0 };
        const policy = { model: 'm', adapterSha256: null };
        const planned = { attempt, scenarioIndex: attempt, scenario: scenarios[attempt]! };
        const options = {
          agent,
          policy,
          mode: 'text',
          rollout: DEFAULT_ROLLOUT,
          place,
          signal,
          resources: null,
        } as const;
        return (await playSingle({ ...options, engine: saying(text), planned })).record;
      }),
    );
  const outcomes = [
    {
      model: 'pocket',
      played: { attempts: await play(['a fair text', 'a poor text', 'fails']), costs: [] },
      error: null,
    },
    {
      model: 'run@2',
      played: { attempts: await play(['a good text', 'a good text', 'a good text']), costs: [] },
      error: null,
    },
  ];
  const store = await openStore(temporaryFolder());
  const environment = { signal, env: {} };
  const players = outcomes.map(({ model }) => ({ name: model })) as never;
  const judging = planJudging(agent, { players }, { flags: { judge: true, 'max-cost-usd': null }, env: {} });
  const plan = { store, scenarios, notes: [], judging };
  const judged = await judgeOutcomes(outcomes, plan, environment);
  const rewards = judged.outcomes.map(({ played }) => played!.attempts.map(({ reward }) => reward));
  expect(rewards).toEqual([
    [0.5, 0.1, null],
    [0.9, 0.9, null],
  ]);
  expect(judged.notes).toEqual([expect.stringMatching(/^rewards are scores of endpoint\/judge, which cost /)]);
  expect(writer.answered).toHaveLength(2);
  expect(await judgeOutcomes(outcomes, plan, environment)).toEqual(judged);
  expect(writer.answered).toHaveLength(2);

  const { models } = summariseOutcomes('writer', { played: 3, of: 3 }, judged.notes, judged.outcomes);
  expect(models.map(({ reward }) => reward?.mean)).toEqual([0.3, 0.9]);
  expect(models[1]?.rewardDifference?.mean).toBeCloseTo(0.6);
});

test('one model alone is not judged, and a limit needs a price', () => {
  const agent = defineAgent({
    name: 'writer',
    scenarios,
    reward: ruler({ judge: { baseUrl: writer.url, model: 'judge' } }),
    rollout: () => Promise.resolve(),
  });
  const plan = (count: number, maxUsd: number | null) =>
    planJudging(
      agent,
      { players: Array.from({ length: count }) as never },
      { flags: { judge: true, 'max-cost-usd': maxUsd }, env: {} },
    );
  expect(() => plan(1, null)).toThrow('needs at least 2');
  expect(() => plan(2, 1)).toThrow('--max-cost-usd has no effect while the price of endpoint/judge is unknown');
});
