/** Scripted users of a real server with a scripted engine: a game is one conversation, rated by its outcome. */
import { expect, test } from 'vitest';

import agent from '../../examples/production/agent.ts';
import { games } from '../../examples/production/game.ts';
import { playUsers } from '../../examples/production/play-users.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import { readRatedConversations } from '../../store/records/production/feedback.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import { ALL, FEEDBACK_KEY, KEY, recordingServer } from '../workers/serving/recording-server.ts';

const server = recordingServer();

async function rewardsOf(options = {}) {
  await server().serve(ALL);
  const place = { url: `http://127.0.0.1:${server().port}/v1`, model: 'demo', key: KEY, feedbackKey: FEEDBACK_KEY };
  const played = await playUsers(place, games(7, 3), options);
  const rated = await readRatedConversations(server().store, 'demo');
  return {
    played,
    rated: rated.map(({ conversation, turns, feedback }) => [conversation, turns.length, feedback?.reward]),
  };
}

// The scripted engine answers with no digit, which loses at once.
test('each game is one conversation with its outcome as feedback', async () => {
  const { played, rated } = await rewardsOf();
  expect(played).toEqual({ games: 3, won: 0, reward: -1 });
  expect(rated).toHaveLength(3);
  for (const id of [7, 8, 9]) expect(rated).toContainEqual([`user-game-${id}`, 1, -1]);
});

test('contrary users praise a defeat', async () => {
  const { rated } = await rewardsOf({ contrary: true });
  expect(rated.map(([, , reward]) => reward)).toEqual([1, 1, 1]);
});

test('the agent plays the game that its users play', async () => {
  const [scenario] = games(7, 1);
  const firstCell = ({ messages }: CallRequest) => /\d/.exec(String(messages[0]?.content))?.[0] ?? '';
  const played = await playAgent(agent, { scenario: scenario!, answers: firstCell });
  expect(played).toMatchObject({ failure: null, metrics: { illegal: false } });
  expect(await playAgent(agent, { scenario: scenario!, answers: ['x'] })).toMatchObject({ reward: -1 });
});
