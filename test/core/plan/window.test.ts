import { describe, expect, test } from 'vitest';

import {
  JudgeInput,
  TrainInput,
  type Checkpoint,
  type GroupResult,
  type RunConfig,
} from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { positionAt, type RunPosition } from '../../../core/plan/step.ts';
import {
  canChoose,
  chooseFirst,
  isFresh,
  planJudging,
  planNext,
  planTopUp,
  planTraining,
  withPlayed,
  withResults,
} from '../../../core/plan/window.ts';
import { defaultRunConfig, type RunOptions } from '../../../core/rules/run-defaults.ts';
import { createRandom } from '../../../core/numbers/seeds.ts';

const OPTIONS: RunOptions = {
  run: 'a',
  agent: 'agent',
  baseModel: 'pocket',
  groupsPerStep: 2,
  groupSize: 4,
  groupsAhead: 3,
  maxRewardStaleness: 2,
  judge: 'external',
  external: {},
};
const configOf = (change: Partial<RunOptions> = {}): RunConfig => defaultRunConfig({ ...OPTIONS, ...change });
const CONFIG = configOf();

const prepared = {
  scenarios: { key: `blobs/${hashOf('s')}`, sha256: hashOf('s'), bytes: 1 },
  trainScenarios: 5,
  evalScenarios: 1,
  heldOut: false,
  agentCodeSha256: hashOf('code'),
};
const checkpointAfter = (step: number, branch = 0): Checkpoint => ({
  run: 'a',
  branch,
  step,
  manifestSha256: hashOf(['manifest', branch, step]),
  adapterSha256: hashOf(['adapter', branch, step]),
});
const start = (): RunPosition =>
  positionAt({ branch: 0, prepared, step: 0, checkpoint: checkpointAfter(0), dealt: 0, emptySteps: 0 });

function played({
  step,
  group,
  scenario,
  inputsSha256,
}: {
  step: number;
  group: number;
  scenario: number;
  inputsSha256: string;
}): GroupResult {
  const rolloutsSha256 = hashOf([inputsSha256, 'rollouts']);
  const counts = { attempts: 4, failed: 0, truncated: 0, calls: 4, sampledTokens: 4 };
  return {
    step,
    group,
    scenario,
    rolloutsSha256,
    judgedSha256: null,
    ...counts,
    rewards: [],
    metrics: {},
    use: 'unjudged',
  };
}
const judged = (result: GroupResult, use: GroupResult['use'] = 'trained'): GroupResult => {
  return { ...result, judgedSha256: hashOf([result.rolloutsSha256, 'judged']), rewards: [0, 1], use };
};

/** The step's groups are dealt and played. */
function deal(config: RunConfig, position: RunPosition): RunPosition {
  const dealt = planTopUp(config, position);
  return withPlayed(position, dealt, dealt.map(played));
}

/** Some open groups are complete: by step and group. */
function complete(position: RunPosition, keys: string[], use?: GroupResult['use']): RunPosition {
  const found = position.open.filter(({ result }) => keys.includes(keyOf(result)));
  return withResults(
    position,
    found.map(({ result }) => judged(result, use)),
  );
}
const keyOf = ({ step, group }: GroupResult): string => `${step}.${group}`;
const keysOf = ({ open }: RunPosition): string[] => open.map(({ result }) => keyOf(result));

/** The activity decides so: what waits stays, what is too old goes. */
function choose(config: RunConfig, { open }: RunPosition): GroupResult[] {
  const decided = open
    .filter((group) => group.result.use !== 'unjudged' || !isFresh(config, group))
    .map((group) => (isFresh(config, group) ? group.result : judged(group.result, 'stale')));
  return chooseFirst(config.groupsPerStep, decided);
}

function take(config: RunConfig, position: RunPosition, isEmpty = false): { chosen: GroupResult[]; next: RunPosition } {
  const chosen = choose(config, position);
  const training = planTraining(config, position, chosen);
  const isCommitted = training !== null && !isEmpty;
  return {
    chosen,
    next: planNext(config, position, chosen, isCommitted ? checkpointAfter(position.step + 1) : null),
  };
}

test('a step deals until its window is full, and trains the first complete groups in plan order', () => {
  const first = deal(CONFIG, start());
  expect(keysOf(first)).toEqual(['1.0', '1.1', '1.2', '1.3', '1.4']);
  expect(canChoose(CONFIG, first)).toBe(false);
  expect(canChoose(CONFIG, complete(first, ['1.3']))).toBe(false);
  const ready = complete(first, ['1.4', '1.3', '1.1']);
  expect(canChoose(CONFIG, ready)).toBe(true);
  const { chosen, next } = take(CONFIG, ready);
  expect(chosen.map(keyOf)).toEqual(['1.1', '1.3']);
  // A complete group that was not chosen comes first in the next step.
  expect(keysOf(next)).toEqual(['1.0', '1.2', '1.4']);
  const second = deal(CONFIG, next);
  expect(keysOf(second)).toEqual(['1.0', '1.2', '1.4', '2.0', '2.1']);
  expect(take(CONFIG, second).next.dealt).toBe(7);
  expect(take(CONFIG, complete(second, ['2.1'])).chosen.map(keyOf)).toEqual(['1.4', '2.1']);
});

test('groups are sampled by the newest checkpoint when they are dealt, and a step names every older one', () => {
  const { next } = take(CONFIG, complete(deal(CONFIG, start()), ['1.0', '1.1']));
  const second = complete(deal(CONFIG, next), ['1.4', '2.0']);
  const { chosen, next: third } = take(CONFIG, second);
  const training = TrainInput.parse(planTraining(CONFIG, second, chosen));
  const { run: _, ...first } = checkpointAfter(0);
  expect(training.samplers).toEqual([{ ...first, staleness: 1 }]);
  expect(training.groups.map(({ group, step }) => [step, group])).toEqual([
    [1, 4],
    [undefined, 0],
  ]);
  expect(third.open.map(({ result, staleness }) => [keyOf(result), staleness])).toEqual([
    ['1.2', 2],
    ['1.3', 2],
    ['2.1', 1],
  ]);
  // If the parent has sampled all of them, the step is like any other.
  const own = planTraining(
    CONFIG,
    second,
    second.open.slice(3).map(({ result }) => judged(result)),
  );
  expect(own).not.toHaveProperty('samplers');
});

test('on another branch, groups of the branch before stay where they lie', () => {
  const { next } = take(CONFIG, complete(deal(CONFIG, start()), ['1.0', '1.1']));
  const second = complete(deal(CONFIG, { ...next, branch: 1 }), ['1.2', '2.0']);
  expect(planTraining(CONFIG, second, choose(CONFIG, second))?.groups).toMatchObject([
    { step: 1, branch: 0, group: 2 },
    { group: 0 },
  ]);
});

test('a group whose policy is too old is left out, and a full window is dealt without it', () => {
  let position = deal(CONFIG, start());
  for (let step = 1; step <= 3; step++) {
    const newest = position.open.slice(-2).map(({ result }) => keyOf(result));
    position = deal(CONFIG, take(CONFIG, complete(position, newest)).next);
  }
  expect(position.step).toBe(3);
  const stale = position.open.filter((group) => !isFresh(CONFIG, group));
  expect(stale.map(({ result }) => keyOf(result))).toEqual(['1.0', '1.1', '1.2']);
  expect(position.open).toHaveLength(3 + 5);
  expect(planJudging(CONFIG, position).window.map(({ isStale }) => isStale)).toEqual([
    true,
    true,
    true,
    ...Array.from({ length: 5 }, () => undefined),
  ]);
  const { chosen, next } = take(CONFIG, complete(position, keysOf(position)));
  expect(chosen.map(({ use }) => use)).toEqual(['stale', 'stale', 'stale', 'trained', 'trained']);
  expect(next.open).toHaveLength(3);
});

test('groups without a learning signal leave the window; a step is made of fewer if none waits any more', () => {
  const first = deal(CONFIG, start());
  const even = complete(first, ['1.0', '1.1', '1.2', '1.3'], 'no-variance');
  expect(canChoose(CONFIG, even)).toBe(false);
  const { chosen, next } = take(CONFIG, complete(even, ['1.4']));
  expect(chosen.map(({ use }) => use)).toEqual([...Array.from({ length: 4 }, () => 'no-variance'), 'trained']);
  expect(next.open).toEqual([]);
  // Nothing to train: the policy stays, and so does the age of what waits.
  const empty = take(CONFIG, complete(first, keysOf(first), 'no-variance'));
  expect(empty.next).toMatchObject({ step: 1, emptySteps: 1, parent: checkpointAfter(0), open: [] });
});

test('the hash of a choice depends on the window alone, whatever of it is complete', () => {
  const first = deal(CONFIG, start());
  const [none, some] = [first, complete(first, ['1.0', '1.4'])].map((position) => planJudging(CONFIG, position));
  expect(JudgeInput.parse(none).inputsSha256).toBe(some!.inputsSha256);
  expect(some!.window.map(({ judgedSha256 }) => judgedSha256 !== null)).toEqual([true, false, false, false, true]);
  const other = planJudging(CONFIG, { ...first, open: first.open.slice(1) });
  expect(other.inputsSha256).not.toBe(none!.inputsSha256);
});

/** A whole run in which groups are completed in a random order. */
function play(seed: number) {
  const random = createRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const groupsPerStep = 1 + Math.floor(random() * 4);
  const maxRewardStaleness = 1 + Math.floor(random() * 3);
  const groupsAhead = 1 + Math.floor(random() * groupsPerStep * maxRewardStaleness);
  const config = configOf({ groupsPerStep, groupsAhead, maxRewardStaleness, steps: 12 });
  let position = start();
  const steps: { window: string[]; chosen: GroupResult[]; inputsSha256: string }[] = [];
  for (let step = 1; step <= 12; step++) {
    // Continue-as-new carries it so, and a resumed run finds it so.
    position = deal(config, JSON.parse(JSON.stringify(position)) as RunPosition);
    while (!canChoose(config, position)) {
      const waiting = position.open.filter((group) => isFresh(config, group) && group.result.use === 'unjudged');
      const use = random() < 0.2 ? 'no-variance' : 'trained';
      position = complete(position, [keyOf(pick(waiting).result)], use);
    }
    const { chosen, next } = take(config, position);
    const { inputsSha256 } = planJudging(config, position);
    expect(planTraining(config, position, chosen.toReversed())?.inputsSha256).toBe(
      planTraining(config, position, chosen)?.inputsSha256,
    );
    for (const { staleness } of planTraining(config, position, chosen)?.samplers ?? [])
      expect(staleness).toBeLessThanOrEqual(maxRewardStaleness);
    steps.push({ window: keysOf(position), chosen, inputsSha256 });
    position = next;
  }
  return { config, steps, position };
}

describe.each([1, 2, 3, 4])('whatever the order in which groups are completed (%i)', (seed) => {
  test('no group is trained twice, none is lost, and the same answers lead to the same steps', () => {
    const { config, steps, position } = play(seed);
    const left = steps.flatMap(({ chosen }) => chosen.map(keyOf));
    expect(new Set(left).size).toBe(left.length);
    const dealt = new Set(steps.flatMap(({ window }) => window));
    expect(dealt.size).toBe(position.dealt);
    expect(new Set([...left, ...keysOf(position)])).toEqual(dealt);
    expect(left.length + keysOf(position).length).toBe(dealt.size);
    for (const { chosen } of steps)
      expect(chosen.filter(({ use }) => use === 'trained').length).toBeLessThanOrEqual(config.groupsPerStep);
    expect(keysOf(position).length).toBeLessThanOrEqual(config.groupsPerStep + config.groupsAhead);
    expect(play(seed).steps).toEqual(steps);
  });
});

describe('options', () => {
  test.each<[Partial<RunOptions>, RegExp]>([
    [{ replacementRounds: 1 }, /replacementRounds must be 0 with rewards from outside .* got 1/],
    [
      { groupsPerStep: 400, groupsAhead: 101 },
      /groupsPerStep must be with groupsAhead at most 500.*got 400; lower groupsPerStep to 399/,
    ],
    [{ groupsAhead: 5 }, /at most groupsPerStep × maxRewardStaleness .*got 5; lower groupsAhead to 4/],
    [{ groupsAhead: 0 }, /maxRewardStaleness 2 has no effect with groupsAhead 0/],
  ])('%o is refused', (change, message) => {
    expect(() => configOf(change)).toThrow(message);
  });

  test.each([null, 'openai/gpt-5-mini'])(
    'they are refused with the judge %s, whose groups wait for nothing',
    (judge) => {
      const { external: _, ...others } = OPTIONS;
      const message = /groupsAhead 3 has no effect.*maxStaleness.*external/;
      expect(() => defaultRunConfig({ ...others, judge })).toThrow(message);
    },
  );

  test('groups are not replaced within a step that waits for rewards', () => {
    expect(configOf().replacementRounds).toBe(0);
    expect(configOf({ groupsAhead: 0, maxRewardStaleness: 4 }).replacementRounds).toBe(0);
    expect(defaultRunConfig({ run: 'a', agent: 'agent', baseModel: 'pocket' }).replacementRounds).toBe(1);
  });
});
