/** Finds out whether one of several named rewards decides alone: what attempts of a group are compared by. Pure. */
import { isNamedReward } from '../../core/rules/named-rewards.ts';
import type { AttemptRow } from '../api/attempt-views.ts';
import { inSteps, percent, type FoundAdvisory } from './advisories.ts';

const MOST_SHARE = 0.8;
/** Fewer say nothing. */
const LEAST_ATTEMPTS = 16;
/** Keeps the fit defined where two rewards are the same, or one never changes. */
const RIDGE = 1e-9;

export type RewardedAttempt = Pick<AttemptRow, 'branch' | 'step' | 'group' | 'reward' | 'metrics'>;

/** `rows`: attempts of the newest steps. Null if no reward dominates, or there is only one. */
export function findDominantReward(rows: readonly RewardedAttempt[]): FoundAdvisory | null {
  const known = rows.filter(({ reward, group }) => reward !== null && group !== null);
  const names = [...new Set(known.flatMap(({ metrics }) => Object.keys(metrics).filter(isNamedReward)))].toSorted();
  if (names.length < 2 || known.length < LEAST_ATTEMPTS) return null;
  const { values, rewards } = centreByGroup(known, names);
  const weights = fitWeights(values, rewards, names.length);
  const parts = names.map((_, index) => values.reduce((sum, row) => sum + (weights[index]! * row[index]!) ** 2, 0));
  const all = parts.reduce((sum, part) => sum + part, 0);
  const largest = parts.indexOf(Math.max(...parts));
  const share = parts[largest]! / all;
  if (!(share > MOST_SHARE)) return null;
  const name = names[largest]!.replace(/^reward\//, '');
  const others = names.filter((_, index) => index !== largest).map((each) => each.replace(/^reward\//, ''));
  const steps = known.map(({ step }) => step);
  const span: [number, number] = [Math.min(...steps), Math.max(...steps)];
  return {
    kind: 'dominant-reward',
    level: 'advice',
    text: `the reward ${name} makes ${percent(share)} of the differences within groups (weight about ${Number(weights[largest]!.toPrecision(2))}): ${others.join(', ')} hardly ${others.length === 1 ? 'counts' : 'count'}`,
    remedy: `check that ${name} is what you want to be learned; lower its weight, or raise those of ${others.join(', ')}, so that they have a similar spread`,
    steps: span,
    look: { ...inSteps(span), sort: '-reward' },
  };
}

/** Values and rewards minus their mean in the group: an advantage is relative to it. */
function centreByGroup(
  rows: readonly RewardedAttempt[],
  names: readonly string[],
): { values: number[][]; rewards: number[] } {
  const groups = new Map<string, RewardedAttempt[]>();
  for (const row of rows) {
    const key = `${row.branch}.${row.step}.${row.group}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const values: number[][] = [];
  const rewards: number[] = [];
  for (const group of groups.values()) {
    const own = group.map(({ metrics, reward }) => [...names.map((name) => metrics[name] ?? 0), reward!]);
    const means = own[0]!.map((_, column) => own.reduce((sum, row) => sum + row[column]!, 0) / own.length);
    for (const row of own) {
      const centred = row.map((value, column) => value - means[column]!);
      values.push(centred.slice(0, -1));
      rewards.push(centred.at(-1)!);
    }
  }
  return { values, rewards };
}

/** Weights of the sum that the rewards are, by least squares: no file of a run tells the agent's own. */
function fitWeights(values: readonly number[][], rewards: readonly number[], count: number): number[] {
  const columns = Array.from({ length: count }, (_, index) => index);
  const dot = (left: (row: number) => number, right: (row: number) => number) =>
    values.reduce((sum, _, row) => sum + left(row) * right(row), 0);
  const matrix = columns.map((i) => [
    ...columns.map(
      (j) =>
        dot(
          (row) => values[row]![i]!,
          (row) => values[row]![j]!,
        ) + (i === j ? RIDGE : 0),
    ),
    dot(
      (row) => values[row]![i]!,
      (row) => rewards[row]!,
    ),
  ]);
  return solve(matrix, count);
}

/** Gauss-Jordan of a positive definite system, its right side as the last column. */
function solve(matrix: number[][], count: number): number[] {
  for (let pivot = 0; pivot < count; pivot++) {
    const scale = matrix[pivot]![pivot]!;
    matrix[pivot] = matrix[pivot]!.map((value) => value / scale);
    for (let row = 0; row < count; row++) {
      const factor = matrix[row]![pivot]!;
      if (row !== pivot) matrix[row] = matrix[row]!.map((value, column) => value - factor * matrix[pivot]![column]!);
    }
  }
  return matrix.map((row) => row[count]!);
}
