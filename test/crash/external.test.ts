/**
 * Rewards from outside, in a real stack: a giver that died before it told the run, and a worker killed between the row
 * that closes a group and its verdict. The bytes are those of the same rewards given at once.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { formatAttemptId } from '../../core/attempt-id.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { listAwaited } from '../../store/records/awaited-groups.ts';
import { openGiver } from '../../store/records/give-reward.ts';
import type { Aim, Hit } from './points/protocol.ts';
import { Project, until } from './project.ts';
import { readLines } from './world.ts';

const SDK = new URL('../../sdk/index.ts', import.meta.url).href;
const AGENT = `import { defineAgent, external } from ${JSON.stringify(SDK)};
export default defineAgent({
  name: 'given',
  scenarios: Array.from({ length: 20 }, (_, index) => ({ id: 'board-' + index })),
  reward: external(),
  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user', content: 'Choose a cell of ' + scenario.id }];
    await openai.chat.completions.create({ model, messages, max_tokens: 8 });
  },
});
`;
const SIZE = ['--steps', '1', '--groups-per-step', '2', '--group-size', '3', '--eval-scenarios', '2'];
const FLAGS = ['--base-model', 'pocket', '--seed', '3', '--replacement-rounds', '0', ...SIZE];
const WITHIN_MS = 240_000;

const project = new Project({ folder: inject('project') });
const store = new FileStore(project.path('store'));
const agent = join(project.folder, 'given.mts');

async function awaited(run: string): Promise<string[]> {
  if ((await store.read(`runs/${run}/run.json`)) === null) return [];
  const groups = await listAwaited(store, run);
  return groups.flatMap(({ place, missing }) => missing.map(({ attempt }) => formatAttemptId({ ...place, attempt })));
}

/** Everything under a hash; the ledger has times and names. */
const bytesOf = (run: string) =>
  Object.fromEntries(Object.entries(project.committed(run)).filter(([file]) => !file.includes('.given/')));

test('a reward is counted once, whoever dies between it and the step', async () => {
  writeFileSync(agent, AGENT);
  const killed = project.start('train', agent, '--run', 'given-late', ...FLAGS);
  await until('all attempts wait', async () => (await awaited('given-late')).length === 6, WITHIN_MS);
  const ids = await awaited('given-late');
  const aim: Aim = { row: 'given', point: 'judged.before', occurrence: 1, action: 'kill' };
  writeFileSync(join(project.points, 'aim-typescript-worker.json'), JSON.stringify(aim));
  // Given to the store, and the run is not told: the giver was killed.
  const giver = await openGiver(store, 'given-late');
  for (const [index, attempt] of ids.slice(0, 3).entries())
    expect(await giver.give({ attempt, reward: index, by: 'ann' })).toMatchObject({ outcome: 'given' });
  for (const [index, attempt] of ids.slice(3).entries())
    expect(await project.run('reward', 'given-late', attempt, String(-index))).toMatchObject({ code: 0 });
  const hits = () => readLines(join(project.points, 'hits.jsonl')) as unknown as Hit[];
  await until('the worker is killed', () => hits().some(({ row }) => row === 'given'), WITHIN_MS);
  const { code, output } = await killed.ended;
  expect(code, output).toBe(0);

  const whole = project.start('train', agent, '--run', 'given-at-once', ...FLAGS);
  await until('all attempts wait', async () => (await awaited('given-at-once')).length === 6, WITHIN_MS);
  const file = join(project.folder, 'given.csv');
  const rows = ids.map((attempt, index) => `${attempt},${index < 3 ? index : 3 - index}\n`);
  writeFileSync(file, `attempt,reward\n${rows.join('')}`);
  const given = await project.run('reward', 'given-at-once', '--file', file);
  expect(given.output).toContain('6 rewards given\nthe run given-at-once was told');
  expect((await whole.ended).code).toBe(0);
  expect(bytesOf('given-late')).toEqual(bytesOf('given-at-once'));
  const verified = await project.run('verify', 'given-late', '--no-recompute');
  expect(verified.output).toContain('given-late is intact');
});
