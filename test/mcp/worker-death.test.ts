/** Processes that MCP servers start end with them, with their attempt, and with their worker. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

import { nodeFlags } from '../../workers/process/module-path.ts';
import { until } from '../until.ts';
import { gatherTrajectoryGroups, Trajectory, TrajectoryGroup, type AttemptContext } from '../../sdk/index.ts';
import { FakeWorld } from '../sdk/loop/fake-backend.ts';
import { callerOf, hostile, playWith } from './hostile.ts';
import { FORKED, forked } from './processes.ts';

test('what an isolated server forks ends with its attempt', async () => {
  const { logs } = await playWith(hostile({ isolate: true }), async (call) => {
    await call('fork', { seconds: FORKED });
    await until('its children sleep', () => forked().length === 3, 100_000, 20);
    return 'forked';
  });
  expect(logs).toEqual(['forked']);
  expect(forked()).toEqual([]);
});

test('a script’s own attempts have tools, too, and their server ends with each of them', async () => {
  const world = await FakeWorld.open();
  onTestFinished(() => world.close());
  const model = await world.model();
  const server = hostile({ isolate: true });
  const play = async (context: AttemptContext) => {
    const call = callerOf(await server.tools(context));
    await call('fork', { seconds: FORKED });
    const content = await call('add', { item: `a${context.attempt}` });
    return new Trajectory({ messagesAndChoices: [{ role: 'user', content }], reward: context.attempt });
  };
  const [group] = await gatherTrajectoryGroups([new TrajectoryGroup([play, play])], { model });
  expect(group!.trajectories.map(({ messagesAndChoices }) => messagesAndChoices[0])).toMatchObject([
    { content: 'a0' },
    { content: 'a1' },
  ]);
  expect(forked()).toEqual([]);
});

test('servers and what they fork end with a worker that is killed in their calls', async () => {
  const program = fileURLToPath(new URL('mcp-worker.ts', import.meta.url));
  const worker = spawn(process.execPath, [...nodeFlags(), program, FORKED], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  await until('the children of both servers sleep', () => forked().length === 6, 100_000, 20);
  worker.kill('SIGKILL');
  await until('they are gone', () => forked().length === 0, 100_000, 20);
});
