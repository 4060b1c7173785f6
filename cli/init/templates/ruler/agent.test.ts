import { playAgent } from 'temper-rl/testing';
import { expect, test } from 'vitest';
import agent from './agent.ts';

const scenario = { id: 'rain', topic: 'rain' };

test('asks for a poem about the topic, and counts its lines', async () => {
  const answers = ['Drops on the pane,\nonly the rain.'];
  const { metrics, calls } = await playAgent(agent, { scenario, answers });
  expect(calls[0]?.request.messages[0]?.content).toContain('rain');
  expect(metrics).toEqual({ lines: 2 });
});

test('no poem is worth less than any', async () => {
  expect(await playAgent(agent, { scenario, answers: [''] })).toMatchObject({ reward: -1 });
});
