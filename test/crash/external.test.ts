/**
 * Rewards from outside, in a real stack: a giver that died before it told the run, and a worker killed between the row
 * that closes a group and its verdict. The bytes are those of the same rewards given at once.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { RewardDesk } from '../../cli/review/desk.ts';
import { ReviewKeys } from '../../operations/review/keys.ts';
import { openReviewServer } from '../../cli/review/server.ts';
import { Waker } from '../../cli/connections/wake.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { openGiver } from '../../store/records/rewards/give-reward.ts';
import { Project, succeed } from '../stack.ts';
import { until } from '../until.ts';
import { awaitedAttempts, writeGivenAgent } from './given-agent.ts';

const SIZE = ['--steps', '1', '--groups-per-step', '2', '--group-size', '3', '--eval-scenarios', '2'];
const FLAGS = ['--base-model', 'pocket', '--seed', '3', '--replacement-rounds', '0', ...SIZE];

const project = new Project({ folder: inject('project') });
const store = new FileStore(project.path('store'));
const agent = writeGivenAgent(project.folder);

const awaited = (run: string): Promise<string[]> => awaitedAttempts(store, run);

/** Everything under a hash; the ledger has times and names. */
const bytesOf = (run: string) =>
  Object.fromEntries(Object.entries(project.committed(run)).filter(([file]) => !file.includes('.given/')));

/** Two by a program and one behind a link, which completes the group: the server wakes the run. */
async function giveOverHttp(run: string, [first = '', second = '', third = '']: readonly string[]): Promise<void> {
  const key = 'a review key of this test';
  const keys = new ReviewKeys(key, await store.id());
  const waker = new Waker({ project: project.folder, env: process.env }, store);
  const desk = new RewardDesk(store, (woken) => waker.wake(woken));
  const place = { host: '127.0.0.1', port: 0, hosts: [], key };
  const server = await openReviewServer({ place, keys, desk });
  const origin = `http://127.0.0.1:${server.port}`;
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${origin}${path}`, { method: 'POST', body, headers });
  for (const [attempt, reward] of [
    [first, 0],
    [second, -1],
  ] as const) {
    const path = `/v1/runs/${run}/attempts/${attempt}/reward`;
    expect((await post(path, JSON.stringify({ reward }), { 'x-api-key': key })).status).toBe(200);
  }
  const link = keys.sign({ kind: 'link', run, attempt: third, expiresAt: Date.now() + 60_000 });
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  expect((await post(`/r/${link}`, 'reward=score&score=-2', form)).status).toBe(200);
  await waker.close();
  await server.close();
}

test('a reward is counted once, whoever dies between it and the step', async () => {
  const killed = project.start('train', agent, '--run', 'given-late', ...FLAGS);
  await until('all attempts wait', async () => (await awaited('given-late')).length === 6);
  const ids = await awaited('given-late');
  project.aim('typescript-worker', { row: 'given', point: 'judged.before' });
  // Given to the store, and the run is not told: the giver was killed.
  const giver = await openGiver(store, 'given-late');
  for (const [index, attempt] of ids.slice(0, 3).entries())
    expect(await giver.give({ attempt, reward: index, by: 'ann' })).toMatchObject({ outcome: 'given' });
  for (const [index, attempt] of ids.slice(3).entries())
    await project.done('rewards', 'give', 'given-late', attempt, String(-index));
  await until('the worker is killed', () => project.hit('given') !== null);
  await succeed(killed.ended);

  const whole = project.start('train', agent, '--run', 'given-at-once', ...FLAGS);
  await until('all attempts wait', async () => (await awaited('given-at-once')).length === 6);
  const file = join(project.folder, 'given.csv');
  const rows = ids.slice(0, 3).map((attempt, index) => `${attempt},${index}\n`);
  writeFileSync(file, `attempt,reward\n${rows.join('')}`);
  const given = await project.run('rewards', 'import', 'given-at-once', file);
  expect(given.output).toContain('3 rewards given\nthe run given-at-once was told');
  await giveOverHttp('given-at-once', ids.slice(3));
  await succeed(whole.ended);
  expect(bytesOf('given-late')).toEqual(bytesOf('given-at-once'));
  expect(await project.done('verify', 'given-late', '--no-recompute')).toContain('given-late is intact');
});
