/** Advisories from a run's files alone: the same list that `temper ui` has from its index. */
import { expect, test } from 'vitest';
import type { RunState } from '../../../core/contract/contract.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { groupTimesKey } from '../../../store/layout.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import type { Store } from '../../../store/store.ts';
import { openAttemptIndex } from '../../../views/index/open-index.ts';
import { viewRun } from '../../../views/runs/run.ts';
import { evaluation, summary, writeFixtureRun } from '../../cli/fixture-store.ts';
import { contextOf } from '../context.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const NOW = Date.UTC(2026, 10, 27, 12);

/** `brief` alone makes the rewards differ, and the held-out win rate falls while the reward rises. */
async function conflictingRun(state: Partial<RunState> = {}): Promise<Store> {
  const rewards = Array.from({ length: 8 }, (_, attempt) => attempt);
  const namedRewards = rewards.map((brief) => ({ correct: brief % 2, brief }));
  const [before, after] = [evaluation(0, 0.9, 0), { ...evaluation(4, 0.2, 0), reward: 0.8 }];
  const evals = { evalBefore: before, evalAfter: after, evals: [before, after] };
  const options = { steps: 4, verdict: { rewards, namedRewards }, state: { ...evals, ...state } };
  const store = await writeFixtureRun(temporaryFolder(), options);
  const named = { 'reward/correct': 0.5, 'reward/brief': 3.5 };
  const last = summary(4, 4);
  await addToCurve(
    store,
    'demo',
    { branch: 0, step: 4 },
    [{ ...last, metrics: { ...last.metrics, ...named } }],
    () => undefined,
  );
  return store;
}

/** Without an index. */
const readAdvisories = async (store: Store, now = NOW) =>
  (await viewRun({ store, index: null, now: () => now }, 'demo')).advisories;

const kindsOf = (advisories: readonly { kind: string }[]) => advisories.map(({ kind }) => kind);

test('the store alone gives the advisories of temper ui, those over attempts and evaluations included', async () => {
  const store = await conflictingRun();
  const found = await readAdvisories(store);
  expect(kindsOf(found)).toEqual(['reward-against-goal', 'dominant-reward']);
  expect(found[1]!.text).toMatch(/^the reward brief makes 100 % of the differences within groups/);
  const index = openAttemptIndex(store, temporaryFolder());
  await index.update('demo');
  const { advisories } = await viewRun(contextOf(store, { index }), 'demo');
  await index.close();
  expect(advisories.map((told) => ({ ...told, attempts: [] }))).toEqual(found);
});

test('a running run that has written nothing for hours is stalled, and one that wrote a second ago is not', async () => {
  const store = await conflictingRun({ state: 'running', phase: 'train', steps: 9, awaited: null });
  const hours = 3 * 60 * 60_000;
  const times = { startedAt: NOW - hours - 1000, endedAt: NOW - hours, host: 'host' };
  await store.replace(groupTimesKey({ run: 'demo', branch: 0, step: 4, group: 0 }), encodeJson(times));
  const [first] = await readAdvisories(store);
  expect(first).toMatchObject({ kind: 'stalled', level: 'alarm', steps: [5, 5] });
  const soon = await readAdvisories(store, NOW - hours + 1000);
  expect(kindsOf(soon)).not.toContain('stalled');
});

test('a run of which nothing is recorded yet has none', async () => {
  const store = await conflictingRun();
  await store.replace('runs/demo/state.json', encodeJson(null));
  expect(await readAdvisories(store)).toEqual([]);
});
