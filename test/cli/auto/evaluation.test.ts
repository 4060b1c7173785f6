/** The evaluation of `temper auto`: base model and trained model are compared by the judge, scenario by scenario. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { judgeOutcomes } from '../../../cli/auto/evaluation-stage.ts';
import { learnedLines } from '../../../cli/auto/last-screen.ts';
import { summariseOutcomes } from '../../../cli/eval/summarise.ts';
import { DEFAULT_ROLLOUT } from '../../../core/run-defaults.ts';
import type { EngineConnection } from '../../../play/connections/engine-connection.ts';
import { HostedLedger } from '../../../play/hosted/hosted-ledger.ts';
import { playSingle } from '../../../play/single-attempt.ts';
import { defineAgent, ruler } from '../../../sdk/index.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { AttemptRecord } from '../../../store/records/trajectories.ts';
import type { ScriptedAuthor } from '../scenarios/scripted-author.ts';
import { startWriter } from './scripted-writer.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

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
  const ledger = await HostedLedger.open({ store, work: 'auto', maxUsd: null });
  const work = { ledger, store, environment: { signal, env: {} } as never };
  const plan = { agentFile: { path: 'agent.ts', agent }, scenarios };
  const judged = await judgeOutcomes(work, outcomes, plan);
  const rewards = judged!.outcomes.map(({ played }) => played!.attempts.map(({ reward }) => reward));
  expect(rewards).toEqual([
    [0.5, 0.1, null],
    [0.9, 0.9, null],
  ]);
  expect(writer.answered).toHaveLength(2);
  expect(await judgeOutcomes(work, outcomes, plan)).toEqual(judged);
  expect(writer.answered).toHaveLength(2);
  await ledger.close();

  const summary = summariseOutcomes('writer', { played: 3, of: 3 }, [], judged!.outcomes);
  expect(learnedLines({ baseModel: 'pocket', run: 'run', judge: judged!.judge, summary })).toEqual([
    'score by endpoint/judge on 3 held-out scenarios: 0.300 for pocket, 0.900 for run',
    'difference: +0.600 (95 % interval +0.208 to +0.992): run is better than its base model',
  ]);
});
