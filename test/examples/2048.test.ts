/** 2048: both editions played. */
import { expect, test } from 'vitest';
import agent from '../../examples/2048/agent.ts';
import { legalMoves } from '../../examples/2048/game.ts';
import small from '../../examples/2048/small-2048.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';

const last = ({ messages }: CallRequest) => String(messages.at(-1)?.content);

const scenario = { id: 'game-1', seed: 1 };

function firstLegal(request: CallRequest): string {
  const tiles = last(request).trim().split(/\s+/);
  return legalMoves(tiles.map((tile) => (tile === '.' ? 0 : Math.log2(Number(tile)))))[0]?.[0] ?? '';
}

test('a game is one conversation that only ever grows, and the same for one seed', async () => {
  const { reward, metrics, calls } = await playAgent(agent, { scenario, answers: firstLegal });
  expect(metrics).toMatchObject({ illegal: false, moves: calls.length });
  expect(calls.length).toBeGreaterThan(30);
  expect(reward).toBeGreaterThan(0.3);
  const asked = calls.map(({ request }) => request.messages);
  for (const [turn, messages] of asked.slice(1).entries()) {
    expect(messages.slice(0, -2)).toEqual(asked[turn]);
  }
  const again = await playAgent(agent, { scenario, answers: firstLegal });
  expect(again.calls.map(({ request }) => request.messages)).toEqual(asked);
});

test('a game ends with an answer that is no move, and keeps what was earned', async () => {
  const fourTimes = (request: CallRequest) => (request.messages.length < 10 ? firstLegal(request) : 'I would go left');
  const { reward, metrics } = await playAgent(agent, { scenario, answers: fourTimes });
  expect(metrics).toMatchObject({ illegal: true, moves: 4 });
  expect(reward).toBeGreaterThanOrEqual(0.5 * (4 / 60));
});

test('the small edition is played by the keys that its board shows', async () => {
  const pressFirst = (request: CallRequest) => /[2468]/.exec(last(request).slice(9))?.[0] ?? '';
  const { metrics, calls } = await playAgent(small, { scenario, answers: pressFirst });
  expect(metrics).toMatchObject({ illegal: false, moves: 12 });
  expect(calls.every(({ request }) => request.messages.length === 1 && last(request).length === 18)).toBe(true);
});
