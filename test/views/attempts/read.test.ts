import { expect, test } from 'vitest';

import { encodeJson } from '../../../store/bytes/json.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import * as layout from '../../../store/layout.ts';
import { decodeRollouts, encodeRollouts, type Rollouts } from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';
import { viewAttemptOf, viewRawAttempt } from '../../../views/attempts/attempt.ts';
import { viewGroupOf } from '../../../views/attempts/group.ts';
import { viewStep } from '../../../views/attempts/step.ts';
import { viewTokens } from '../../../views/attempts/tokens.ts';
import { NotFound } from '../../../views/context/context.ts';
import { writeFixtureRun, type FixtureOptions } from '../../cli/fixture-store.ts';
import { contextOf } from '../context.ts';
import { attemptOf, callOf, FAILED, rolloutsOf, user } from '../../store/records/made-attempt.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

async function fixture(options: FixtureOptions = {}): Promise<Store> {
  return writeFixtureRun(temporaryFolder(), { steps: 3, ...options });
}

const NO_QUERY = new URLSearchParams();

test('a step has its summary, its groups with all rewards, and the step’s own line of the curve', async () => {
  const context = contextOf(await fixture());
  const step = await viewStep(context, 'demo', '2', NO_QUERY);
  expect(step).toMatchObject({ run: 'demo', branch: 0, step: 2, summary: { step: 2 }, evaluation: null, leftOut: 0 });
  expect(step.groups.map(({ group, scenario }) => [group, scenario])).toEqual(
    Array.from({ length: 8 }, (_, group) => [group, `game-${group}`]),
  );
  const [first] = step.groups;
  const records = await readRecords(context.store, { run: 'demo', branch: 0, step: 2, group: 0 });
  expect(first?.rewards).toEqual(records.attempts.map(({ reward }) => reward));
  expect(first?.sampledTokens).toBe(
    records.attempts.flatMap(({ calls }) => calls).reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
  );
});

test('groups that were not trained are counted, beside those that were', async () => {
  const { warnings, summary } = await viewStep(contextOf(await fixture({ steps: 9 })), 'demo', '9', NO_QUERY);
  expect(summary).toMatchObject({ groups: 8, unused: { 'no-variance': 1 } });
  expect(warnings[0]).toBe('not trained: 1 group had identical rewards (no learning signal)');
});

test('the record, the page and the tokens of each attempt have its numbers, last attempt and first alike', async () => {
  const store = await fixture();
  const { attempts } = await readRecords(store, { run: 'demo', branch: 0, step: 2, group: 1 });
  for (const record of [attempts.at(-1)!, attempts[0]!]) {
    const id = `0.2.1.${record.attempt}`;
    expect(await viewRawAttempt(contextOf(store), 'demo', id)).toEqual(record);
    const { turns } = await viewAttemptOf(contextOf(store), 'demo', id);
    expect(turns.map(({ promptTokens }) => promptTokens)).toEqual(
      record.calls.map(({ promptTokenIds }) => promptTokenIds.length),
    );
    const tokens = await viewTokens(contextOf(store), 'demo', id);
    expect(tokens.turns.map(({ logprobs }) => logprobs)).toEqual(record.calls.map(({ logprobs }) => logprobs));
  }
});

test('a group’s attempts have what the record says, in the order in which the calls were made', async () => {
  const store = await fixture();
  const place = { run: 'demo', branch: 0, step: 2, group: 1 };
  const records = await readRecords(store, place);
  const count = records.attempts[3]!.calls.length;
  const order = Array.from({ length: count }, (_, index) => count - 1 - index);
  const calls = order.map((index) => [1000 * index, 1000 * index + 250] as const);
  const times = {
    startedAt: 0,
    endedAt: 9000,
    callOrders: { 3: order },
    attemptTimes: { 3: { startedAt: 0, endedAt: 4000, calls } },
  };
  await store.replace(layout.groupTimesKey(place), encodeJson(times));
  const view = await viewAttemptOf(contextOf(store), 'demo', '0.2.1.3');
  expect(view.row).toMatchObject({ id: '0.2.1.3', reward: records.attempts[3]!.reward, turns: count, seconds: 4 });
  expect(view.turns.map(({ call }) => call)).toEqual(order);
  expect(view.turns[0]).toMatchObject({ seconds: 0.25, startedAt: new Date(calls[0]![0]).toISOString() });
  expect(await viewRawAttempt(contextOf(store), 'demo', '0.2.1.3')).toEqual(records.attempts[3]);
});

test('an advantage is the reward minus the group’s mean', async () => {
  const { attempts, row } = await viewGroupOf(contextOf(await fixture()), 'demo', '0.1.0');
  expect(attempts).toHaveLength(8);
  for (const attempt of attempts) expect(attempt.row.advantage).toBeCloseTo(attempt.row.reward! - row!.mean!, 12);
});

test('judged rewards count, with explanation, score and the agent’s own reward beside them', async () => {
  const store = await fixture({ explanation: 'Because of the fork.' });
  const { attempts, judge } = await viewGroupOf(contextOf(store), 'demo', '0.1.0');
  expect(attempts[4]).toMatchObject({
    row: { reward: 0.5 },
    explanation: 'Because of the fork.',
    scores: { rulerScore: 0.5 },
  });
  expect(attempts[4]!.scores).toHaveProperty('agentReward');
  // The fixture has no answers of the judge: a verdict of another run’s.
  expect(judge).toMatchObject({ judge: 'openai/gpt-5-mini', questions: [{ messages: null, answers: [] }] });
});

test('rewards by name, by role, and metrics that were given are shown by their names', async () => {
  const each = <T>(value: T) => Array.from({ length: 8 }, () => value);
  const verdict = {
    judge: 'external',
    namedRewards: each({ human: 0.75 }),
    roleRewards: each({ buyer: 1 }),
    givenMetrics: each({ stars: 4 }),
  };
  const store = await fixture({ verdict });
  const given = { schema: 1, kind: 'reward', attempt: 2, reward: 0.75, by: 'ann', note: 'good', key: null } as const;
  const at = '2026-11-01T10:00:00.000Z';
  await store.publish(layout.givenKey({ run: 'demo', branch: 0, step: 1, group: 0 }, 0), encodeJson({ ...given, at }));
  const view = await viewAttemptOf(contextOf(store), 'demo', '0.1.0.2');
  expect(view.scores).toEqual({ 'reward/human': 0.75, 'role/buyer': 1 });
  expect(view.metrics).toMatchObject({ stars: 4 });
  expect(view.given).toEqual([{ reward: 0.75, by: 'ann', note: 'good', at }]);
});

test('an evaluation is a group without training, whose attempts have names of their own', async () => {
  const context = contextOf(await fixture());
  const group = await viewGroupOf(context, 'demo', 'eval.0.3');
  expect(group).toMatchObject({ id: 'eval.0.3', title: 'evaluation after step 3', row: null, judge: null, leftOut: 0 });
  expect(group.attempts).toHaveLength(40);
  const { row } = await viewAttemptOf(context, 'demo', 'eval.0.3.17');
  expect(row).toMatchObject({ id: 'eval.0.3.17', group: null, use: 'eval', advantage: null });
  expect(group.attempts.find((attempt) => attempt.row.attempt === 17)?.row).toEqual(row);
});

test('an evaluation begins with its failures and lowest rewards, and names each scenario before training', async () => {
  const store = await fixture();
  const context = contextOf(store);
  const { attempts } = await viewGroupOf(context, 'demo', 'eval.0.3');
  const rewards = attempts.map(({ row }) => row.reward!);
  expect(rewards).toEqual(rewards.toSorted((a, b) => a - b));
  for (const { row, before } of attempts) {
    const first = await viewAttemptOf(context, 'demo', before!.id);
    expect([first.row.step, first.row.scenario, first.row.reward]).toEqual([0, row.scenario, before!.reward]);
  }
  expect((await viewAttemptOf(context, 'demo', attempts[0]!.row.id)).before).toEqual(attempts[0]!.before);
  const start = await viewGroupOf(context, 'demo', 'eval.0.0');
  expect(start.attempts.filter(({ before }) => before !== undefined)).toEqual([]);
  const played = [{ reward: 1 }, FAILED, { reward: 0 }].map((told, attempt) =>
    attemptOf(attempt, [callOf([user('?')], '!')], { ...told, scenario: 4000, scenarioId: 'same' }),
  );
  const place = { run: 'demo', branch: 0, step: 2 };
  const { header } = rolloutsOf(played, { branch: 0, step: 2, adapterSha256: 'a'.repeat(64) });
  await store.publish(layout.evalRolloutsKey(place), await encodeRollouts({ header, attempts: played }));
  const mixed = await viewGroupOf(context, 'demo', 'eval.0.2');
  expect(mixed.attempts.map(({ row }) => row.attempt)).toEqual([1, 2, 0]);
  expect(mixed.attempts.map(({ before }) => before?.id)).toEqual([undefined, undefined, 'eval.0.0.0']);
});

test('a group that a script’s loop played to measure is readable', async () => {
  const store = await fixture();
  const place = { run: 'demo', branch: 0, step: 1, group: 0 };
  const { header, attempts } = await readRecords(store, place);
  await store.publish(layout.validationKey(place), await encodeRollouts({ header, attempts: attempts.slice(0, 2) }));
  const group = await viewGroupOf(contextOf(store), 'demo', 'validation.0.1.0');
  expect(group.attempts.map(({ row }) => [row.id, row.use])).toEqual([
    ['validation.0.1.0.0', 'eval'],
    ['validation.0.1.0.1', 'eval'],
  ]);
});

test('a step in progress shows the groups that there are, and those that are not judged say so', async () => {
  const store = await fixture();
  const place = { run: 'demo', branch: 0, step: 4, group: 2 };
  await store.publish(layout.rolloutsKey(place), await encodeRollouts(playedAt(place)));
  const step = await viewStep(contextOf(store), 'demo', '4', NO_QUERY);
  expect(step).toMatchObject({ summary: null, committedAt: null, adapterSha256: null });
  expect(step.groups).toMatchObject([{ group: 2, use: 'unjudged', rewards: [1, 0], mean: 0.5, deviation: 0.5 }]);
});

test('an old branch stays readable, and without one named the newest is followed', async () => {
  const store = await fixture();
  const file = { schema: 1, branch: 1, fromBranch: 0, fromStep: 2, requestId: 'r' };
  await store.publish(layout.branchKey('demo', 1), encodeJson(file));
  const place = { run: 'demo', branch: 1, step: 3, group: 0 };
  await store.publish(layout.rolloutsKey(place), await encodeRollouts(playedAt(place)));
  const context = contextOf(store);
  expect(await viewStep(context, 'demo', '3', NO_QUERY)).toMatchObject({ branch: 1, groups: [{ scenario: 's' }] });
  expect(await viewStep(context, 'demo', '2', NO_QUERY)).toMatchObject({ branch: 0 });
  const left = await viewStep(context, 'demo', '3', new URLSearchParams({ branch: '0' }));
  expect([left.branch, left.groups.length]).toEqual([0, 8]);
});

test('a verdict names the step’s groups, and says of each what it came to', async () => {
  const store = await fixture();
  const place = { run: 'demo', branch: 0, step: 2 };
  const sha = 'b'.repeat(64);
  const groups = [0, 1].map((group) => ({ group, rolloutsSha256: sha, judgedSha256: sha, rewards: [1, 0] }));
  const verdict = {
    schema: 1,
    inputsSha256: sha,
    groups: groups.map((group, index) => ({ ...group, use: index === 0 ? 'trained' : 'stale' })),
  };
  await store.publish(layout.stepVerdictKey(place), encodeJson(verdict));
  const { groups: rows } = await viewStep(contextOf(store), 'demo', '2', NO_QUERY);
  expect(rows.slice(0, 2).map(({ use }) => use)).toEqual(['trained', 'stale']);
  const { row, attempts } = await viewGroupOf(contextOf(store), 'demo', '0.2.1');
  expect([row!.use, attempts[0]!.row.use]).toEqual(['stale', 'stale']);
});

test('what there is not is said with what was asked for', async () => {
  const context = contextOf(await fixture());
  const refused = async (view: Promise<unknown>) => {
    const error: unknown = await view.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NotFound);
    return (error as Error).message;
  };
  expect(await refused(viewStep(context, 'demo', '9', NO_QUERY))).toBe('run demo has no step 9 on branch 0');
  expect(await refused(viewStep(context, 'none', '1', NO_QUERY))).toContain('no run none');
  expect(await refused(viewGroupOf(context, 'demo', '0.1.99'))).toContain('no attempts of 0.1.99');
  expect(await refused(viewGroupOf(context, 'demo', '../..'))).toContain('BRANCH.STEP.GROUP');
  expect(await refused(viewAttemptOf(context, 'demo', '0.1.0.99'))).toContain('its group has 8');
});

test('a large group is cut, and says by how much', async () => {
  const store = await openStore(temporaryFolder());
  await writeFixtureRun(temporaryFolder(), { steps: 1, storeUri: store.uri });
  const place = { run: 'demo', branch: 0, step: 2, group: 0 };
  const attempts = Array.from({ length: 70 }, (_, attempt) => attemptOf(attempt, [callOf([user('?')], '!')]));
  const { header } = playedAt(place);
  await store.publish(layout.rolloutsKey(place), await encodeRollouts({ header, attempts }));
  const group = await viewGroupOf(contextOf(store), 'demo', '0.2.0');
  expect([group.attempts.length, group.leftOut, group.row!.rewards.length]).toEqual([64, 6, 70]);
});

async function readRecords(store: Store, place: layout.GroupPlace): Promise<Rollouts> {
  return decodeRollouts((await store.read(layout.rolloutsKey(place)))!, 'rollouts');
}

function playedAt({ branch, step, group }: layout.GroupPlace): Rollouts {
  const attempts = [1, 0].map((reward, attempt) => attemptOf(attempt, [callOf([user('?')], '!')], { reward }));
  const adapterSha256 = 'a'.repeat(64);
  return rolloutsOf(attempts, { branch, step, group, scenarioId: 's', scenario: 0, adapterSha256 });
}
