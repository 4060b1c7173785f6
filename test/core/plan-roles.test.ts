import { describe, expect, test } from 'vitest';

import type { RunConfig } from '../../core/contract/contract.ts';
import { findConfigProblem } from '../../core/rules/config-rules.ts';
import { planEvaluation } from '../../core/plan/evaluation.ts';
import { planInitialise } from '../../core/plan/step.ts';
import { planJudging, planNext, planTopUp, planTraining, withPlayed } from '../../core/plan/window.ts';
import { warnOfTraining } from '../../core/reports/training-warnings.ts';
import { countPolicies, otherPolicies, seatedPolicy } from '../../core/rules/roles.ts';
import { checkpointAt, CONFIG, PLAYED, POSITION } from './roles-run.ts';

function withKeep(keep: number): RunConfig {
  const past = { kind: 'league', policy: 'b', every: 2, keep } as const;
  return { ...CONFIG, roles: { ...CONFIG.roles, past } };
}

const WINDOW = withPlayed(POSITION, planTopUp(CONFIG, POSITION).slice(0, PLAYED.length), PLAYED);
const TRAINED = { white: 'main', black: 'b' };
const { roles: _roles, competing: _competing, ...PLAIN } = CONFIG;

test.each([
  ['without roles', PLAIN, 1],
  ['own, frozen and of the league', CONFIG, 2 + 1 + 3],
  ['the first checkpoint in each trained role, in an evaluation of competing roles', withKeep(1), 2 + 1 + 2],
])('policies that a step samples from: %s', (_, config, policies) => {
  expect(countPolicies(config as RunConfig)).toBe(policies);
});

describe('a step of roles', () => {
  test('names the trained roles and the players of the others', () => {
    const [group] = planTopUp(CONFIG, POSITION);
    expect(group).toMatchObject({ roles: TRAINED, policy: checkpointAt(3) });
    expect(Object.keys(group!.seats ?? {}).toSorted()).toEqual(['old', 'past']);
    expect(planJudging(CONFIG, WINDOW)).toMatchObject({ roles: TRAINED });
    expect(planInitialise(CONFIG, 0)).toMatchObject({ policies: ['b'] });
  });

  test('a run without roles plans the same bytes as before there were any', () => {
    const { league: _league, start: _start, ...position } = POSITION;
    const [group] = planTopUp(PLAIN, position);
    expect(group).not.toHaveProperty('roles');
    expect(group).not.toHaveProperty('seats');
    expect(planInitialise(PLAIN, 0)).not.toHaveProperty('policies');
    expect(planEvaluation(PLAIN, position)).not.toHaveProperty('start');
  });

  test('carries the scores of the league into the commit and to the next step', () => {
    const training = planTraining(CONFIG, WINDOW, PLAYED);
    expect(training).toMatchObject({ roles: TRAINED, league: { past: [{ step: 0 }, { step: 2 }] } });
    const next = planNext(CONFIG, WINDOW, PLAYED, checkpointAt(4));
    expect(next.league?.['past']?.map(({ checkpoint }) => checkpoint.step)).toEqual([0, 2, 4]);
    expect(next.start).toEqual(checkpointAt(0));
    expect(planNext(CONFIG, WINDOW, PLAYED, null).league).toEqual(POSITION.league);
  });

  test('an evaluation plays against the first checkpoint', () => {
    const evaluation = planEvaluation(CONFIG, POSITION);
    expect(evaluation).toMatchObject({
      roles: TRAINED,
      start: checkpointAt(0),
      policy: checkpointAt(3),
      seats: { past: { checkpoint: checkpointAt(0), policy: 'b' } },
    });
  });
});

test('a trained role that no rollout calls is a warning after three steps', () => {
  const step = (number: number, calls: number) => ({
    step: number,
    reward: 0,
    train: {},
    groups: 1,
    unused: {},
    attempts: 4,
    metrics: { 'calls/white': 2, 'calls/black': calls },
  });
  const unused = [step(1, 0), step(2, 0), step(3, 0)];
  expect(warnOfTraining(unused)).toEqual([
    { kind: 'unused-role', text: expect.stringMatching(/^the role black was not called in 3 steps/) },
  ]);
  expect(warnOfTraining([step(1, 1), ...unused.slice(1)])).toEqual([]);
});

test('a policy of a checkpoint is served under its own name, and must be there', () => {
  expect(otherPolicies(CONFIG)).toEqual(['b']);
  expect(seatedPolicy({ checkpoint: checkpointAt(3), policy: 'b' })).toEqual({
    model: 'demo@3:b',
    adapterSha256: 'b'.repeat(64),
  });
  expect(() => seatedPolicy({ checkpoint: checkpointAt(3), policy: 'c' })).toThrow(
    'the policy c must be one of the checkpoint demo@3, which has main, b',
  );
});

const shared = { white: { kind: 'policy', policy: 'main' }, black: { kind: 'policy', policy: 'main' } } as const;

test.each<[string, Partial<RunConfig>, RegExp]>([
  ['a league of an overlapping run', { maxStaleness: 1 }, /maxStaleness must be 0 with a league/],
  ['several policies without adapters', { train: { ...CONFIG.train, lora: null } }, /roles must share the policy main/],
  [
    'the mean over both seats of a game',
    { roles: shared, train: { ...CONFIG.train, baseline: 'group' } },
    /baseline must be rae where competing roles share a policy .* carries no information/,
  ],
  [
    'a scale with a running mean',
    { train: { ...CONFIG.train, baseline: 'rae', advantageScale: 'group-std' } },
    /advantageScale group-std has no effect with baseline rae/,
  ],
])('%s is refused with the reason', (_name, changes, refusal) => {
  const base = { ...CONFIG, ...changes };
  const minimal = { ...base, train: { ...base.train, klCoefficient: 0 } };
  expect(findConfigProblem({ ...minimal, ...withoutKl(minimal) })).toMatch(refusal);
});

/** The contract's example uses options that depend on others. */
function withoutKl(config: RunConfig): Partial<RunConfig> {
  const { klReference: _reference, ...train } = config.train;
  return {
    train: { ...train, klAs: 'loss', klEstimator: 'k3-ratio' },
    startAdapter: undefined,
    external: undefined,
    production: undefined,
  } as never;
}
