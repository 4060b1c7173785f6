/** The support desk that people review: what it plays, and the scripted reviewer against a real `temper review`. */
import { expect, test } from 'vitest';
import agent from '../../examples/support-review/agent.ts';
import pairsAgent from '../../examples/support-review/pairs-agent.ts';
import { tickets } from '../../examples/support-review/tickets.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import { readGiven } from '../../store/records/rewards/given-rewards.ts';
import { KEY, serveReview } from '../cli/review/served.ts';
import { ScriptedReviewer } from './scripted/reviewer.ts';

const GROUP = { run: 'demo', branch: 0, step: 1, group: 0 };

test.each([
  ['by scores', agent],
  ['by pairs', pairsAgent],
] as const)('the desk that is reviewed %s gives no reward of its own', async (_, desk) => {
  const [scenario] = tickets('train', 1);
  const answers = ({ messages }: CallRequest) => (messages.at(-1)?.content === 'late calm 12345' ? '1' : '?');
  const attempt = await playAgent(desk, { scenario: scenario!, answers });
  expect(attempt).toMatchObject({ reward: null, metrics: { best: true, liked: 1, legal: true } });
});

test('the scripted reviewer scores each attempt once, after a delay that its seed decides', async () => {
  const served = await serveReview({ external: {}, answers: ['1', '4', '3'], scenarioId: 'train-0-late-calm' });
  const open = (seed: string) =>
    new ScriptedReviewer({ ...reviewerOf(served.port), pairs: false, delayMs: 1000, seed });
  const reviewer = open('1');
  expect(await reviewer.round(0)).toBe(0);
  expect(await reviewer.round(2000)).toBe(6);
  expect(await reviewer.round(4000)).toBe(0);
  const rows = await readGiven(served.store, GROUP);
  expect(rows).toMatchObject([1, 0.4, 0].map((reward, attempt) => ({ attempt, reward, by: 'script' })));
  expect(served.woken).toContain('demo');
});

test('the scripted reviewer compares each pair by its taste, and by chance where it errs', async () => {
  const weights = { review: 1, agent: 0 };
  const review = { pairwise: true, comparisonsPerAttempt: 2, reviewers: 2, question: null, weights };
  const answers = ['1', '4', '3'];
  const served = await serveReview({ external: { review }, answers, scenarioId: 'train-0-late-calm' });
  const place = reviewerOf(served.port);
  const sober = new ScriptedReviewer({ ...place, pairs: true, delayMs: 0, seed: '1' });
  const erring = new ScriptedReviewer({ ...place, name: 'tired', pairs: true, delayMs: 0, mistakes: 1, seed: '2' });
  expect(await sober.round(0)).toBe(6);
  expect(await erring.round(0)).toBe(6);
  const rows = (await readGiven(served.store, GROUP)).filter((row) => row.kind === 'comparison');
  const liked = rows.filter(({ by }) => by === 'script');
  expect(liked).toHaveLength(3);
  for (const { left, right, answer } of liked) expect(answer).toBe(left < right ? 'left' : 'right');
  const answersOf = (name: string) => rows.filter(({ by }) => by === name).map(({ answer }) => answer);
  expect(answersOf('tired')).not.toEqual(answersOf('script'));
});

function reviewerOf(port: number) {
  return { url: `http://127.0.0.1:${port}`, key: KEY, run: 'demo', name: 'script', mistakes: 0 };
}
