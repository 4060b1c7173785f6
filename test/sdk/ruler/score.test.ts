import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { ruler, rulerScoreGroup, scoreConversations, type ScorableTrajectory } from '../../../sdk/index.ts';
import { connectEngine } from '../../../play/connections/engine-connection.ts';
import { ENV, rulerFor, saying, TASK } from '../../play/judge/judging.ts';
import { readPrompt, startScriptedJudge, type ScriptedJudge } from '../../play/judge/scripted-judge.ts';
import { temporaryEngine } from '../../play/shared-engine.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let scripted: ScriptedJudge;
beforeEach(async () => {
  scripted = await startScriptedJudge();
});
afterEach(() => scripted.close());

function trajectory(content: string, reward: number): ScorableTrajectory {
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } };
  const common = { tools: null, additionalHistories: [], explanation: null };
  return { ...common, messagesAndChoices: [...TASK, choice], reward, metrics: { moves: 3 } };
}

test('a group is scored in place, and keeps its own rewards as a metric', async () => {
  const group = { trajectories: [trajectory('good good', 5), trajectory('good', 7)], name: 'mine' };
  const scored = await rulerScoreGroup(group, rulerFor(scripted, { weights: { ruler: 1, agent: 0.1 } }), { env: ENV });
  expect(scored).toBe(group);
  expect(scored.trajectories).toMatchObject([
    { reward: 0.7, explanation: '1 lines', metrics: { moves: 3, agentReward: 5, rulerScore: 0.2 } },
    { reward: 0.8, metrics: { agentReward: 7, rulerScore: 0.1 } },
  ]);
  expect(readPrompt(scripted.asked[0]!.messages).task).toHaveLength(2);
});

test('what turns earned is part of the own reward, and weighs what that weighs', async () => {
  const rewarded = { ...trajectory('good good', 4), turnRewards: [{ reward: 1 }, { reward: -2 }] };
  const group = { trajectories: [rewarded, trajectory('good', 7)] };
  await rulerScoreGroup(group, rulerFor(scripted, { weights: { ruler: 1, agent: 0.5 } }), { env: ENV });
  expect(rewarded).toMatchObject({
    reward: 2.2,
    turnRewards: [{ reward: 0.5 }, { reward: -1 }],
    metrics: { agentReward: 3, rulerScore: 0.2 },
  });
});

test('where its judge fails, nothing of a group is changed', async () => {
  const group = { trajectories: [trajectory('good good', 5), trajectory('good', 7)] };
  scripted.replyNext({ status: 401 });
  await expect(rulerScoreGroup(group, rulerFor(scripted), { env: ENV })).rejects.toMatchObject({ type: 'BadConfig' });
  expect(group.trajectories.map(({ reward }) => reward)).toEqual([5, 7]);
});

test('an empty group is none to be judged', async () => {
  expect(await rulerScoreGroup({ trajectories: [] }, rulerFor(scripted), { env: ENV })).toEqual({ trajectories: [] });
  expect(scripted.asked).toEqual([]);
});

test('conversations are scored in their order, and with a store the judge is asked once in all', async () => {
  const conversations = [saying('a', 'good good'), saying('b', 'good')];
  const context = { env: ENV, store: pathToFileURL(temporaryFolder()).href };
  const scores = await ruler(conversations, rulerFor(scripted), context);
  expect(scores).toEqual([
    { id: 'a', score: 0.2, explanation: '1 lines' },
    { id: 'b', score: 0.1, explanation: '1 lines' },
  ]);
  expect(await ruler(conversations, rulerFor(scripted), context)).toEqual(scores);
  expect(scripted.asked).toHaveLength(1);
});

test('ids must be their own', async () => {
  const twice = [saying('a', 'x'), saying('a', 'y')];
  await expect(ruler(twice, rulerFor(scripted), { env: ENV })).rejects.toThrow('must have unique ids, got a twice');
  await expect(ruler([], rulerFor(scripted), { env: ENV })).rejects.toThrow('at least one conversation');
});

test('an engine of one’s own judges, and must answer with the adapter that was named', async () => {
  const judge = ruler({ judge: 'engine/demo@3' });
  const engine = await temporaryEngine({
    answer: ({ messages }) => {
      const asked = messages.map(({ role, content }) => ({ role, content: content ?? '' }));
      const scores = [...readPrompt(asked).attempts.keys()].map((id) => ({ id, explanation: 'own', score: 0.5 }));
      return JSON.stringify({ scores });
    },
    adapterSha256: () => 'a'.repeat(64),
  });
  const connection = connectEngine({ url: engine.url, key: engine.key });
  const conversations = [saying('a', 'x')];
  const scored = (adapterSha256: string) =>
    scoreConversations(conversations, judge, { engine: { connection, adapterSha256 } });
  expect(await scored('a'.repeat(64))).toMatchObject({ scores: [{ score: 0.5 }], spent: { usd: 0 } });
  await expect(scored('b'.repeat(64))).rejects.toMatchObject({ type: 'PolicyMismatch' });
  await expect(scoreConversations(conversations, judge)).rejects.toThrow('needs the engine');
  await connection.close();
});
