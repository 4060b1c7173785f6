import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import type { RewardRules } from '../../../../core/plan/step.ts';
import { trainedRewards } from '../../../../core/plan/shaped-rewards.ts';
import { judgeByAgent, summariseGroup } from '../../../../store/records/groups/group-result.ts';
import type { AttemptRecord } from '../../../../store/records/groups/trajectories.ts';
import { attemptOf, callOf, FAILED, rolloutsOf } from '../made-attempt.ts';

const PLAN = { step: 1, group: 0, scenario: 0, minimumGroupSize: 2, overlongBuffer: 0, overlongPenalty: 1 };
const CALL = callOf([], '', { adapterSha256: null });

interface Played {
  reward: number | null;
  isCut?: boolean;
  isSilent?: boolean;
}

function attempt({ reward, isCut = false, isSilent = false }: Played, index: number): AttemptRecord {
  const outcome = reward === null ? FAILED : { reward };
  return attemptOf(index, isSilent ? [] : [CALL], { ...outcome, truncated: isCut });
}

const cut = (reward: number): Played => ({ reward, isCut: true });
const whole = (reward: number): Played => ({ reward });

test.each([
  ['no attempt but cut ones, masked', 'mask', [cut(1), cut(0)], 'all-truncated'],
  ['a failed one beside them', 'mask', [cut(1), cut(0), { reward: null }], 'all-truncated'],
  ['one that asked nothing beside them', 'mask', [cut(1), { reward: 0, isSilent: true }], 'all-truncated'],
  ['cut ones alone, kept', 'keep', [cut(1), cut(0)], 'trained'],
  ['failures that were all cut, masked: the others are trained', 'mask', [whole(1), cut(0)], 'trained'],
  ['equal rewards once the best one is penalised', 'penalise', [cut(2), whole(1), whole(1)], 'no-variance'],
  ['cut ones alone, penalised', 'penalise', [cut(2), cut(1)], 'no-variance'],
  ['different rewards after a penalty', 'penalise', [cut(2), whole(1), whole(0)], 'trained'],
] as const)('%s', (_, truncated, played, use) => {
  const rollouts = rolloutsOf(played.map(attempt));
  const result = summariseGroup({ ...PLAN, truncated }, rollouts, judgeByAgent(rollouts, '', PLAN), '');
  expect(result.use).toBe(use);
});

/** The trainer's advantages are held to the same file (gpu-worker/tests/training/test_overlong.py). */
interface Shaped {
  name: string;
  rules: RewardRules;
  attempts: { reward: number | null; truncated?: boolean; calls: [tokens: number, limit: number | null][] }[];
  /** Costs as verdicts record them. */
  costs?: number[];
  trained: (number | null)[];
  use: string;
}

const SHAPED = JSON.parse(readFileSync(new URL('shaped-rewards.json', import.meta.url), 'utf8')) as Shaped[];

test.each(SHAPED)('overlong answers: $name', ({ rules, attempts: played, costs, trained, use }) => {
  const attempts = played.map(({ reward, truncated = false, calls }, index) => ({
    ...attempt({ reward, isCut: truncated }, index),
    calls: calls.map(([tokens, limit]) => ({
      ...CALL,
      request: { messages: [], ...(limit === null ? {} : { max_tokens: limit }) },
      tokenIds: Array.from({ length: tokens }, () => 2),
    })),
  }));
  const rollouts = rolloutsOf(attempts);
  const all = { ...PLAN, ...rules };
  const judged = judgeByAgent(rollouts, '', all);
  expect(judged.overlongCosts).toEqual(costs);
  expect(trainedRewards(all, attempts, judged)).toEqual(trained);
  const result = summariseGroup({ ...PLAN, ...rules }, rollouts, judged, '');
  expect(result.use).toBe(use);
  // People see what the agent gave.
  expect(result.rewards).toEqual(played.map(({ reward }) => reward).filter((reward) => reward !== null));
});
