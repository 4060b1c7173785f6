/** What real runs are told: nothing where they succeed, after each evaluation and at the end; what is wrong where they fail. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hintIfStalled } from '../../core/reports/learning-signal.ts';
import { warnOfLastEvaluation, warnOfLastStep, warnOfTraining } from '../../core/reports/training-warnings.ts';
import { findAdvisories } from '../../views/runs/advisories.ts';
import { readCurve, type SavedRun } from './curve.ts';

type Outcome = 'succeeds' | 'fails';
const fileOf = (outcome: Outcome, name: string) => join(import.meta.dirname, outcome, name);
const filesOf = (outcome: Outcome) => readdirSync(join(import.meta.dirname, outcome)).toSorted();

/** By the pages and the report, `temper show`, and the terminal's last line. */
function toldOf({ state, steps }: SavedRun): string[] {
  const hint = hintIfStalled(state, steps);
  return [
    ...[...warnOfTraining(steps, state.evals), ...findAdvisories(steps, state.evals)].map(
      ({ kind, text }) => `${kind}: ${text}`,
    ),
    ...(hint === null ? [] : [`hint: ${hint}`]),
  ];
}

/** Warnings below the lines of the newest step and of its evaluation. */
function linesOf({ state: { step, evals }, steps }: SavedRun): string[] {
  const before = evals.filter((each) => each.step < step);
  const found = [
    ...warnOfLastStep(steps, before),
    ...(evals.length > before.length ? warnOfLastEvaluation(evals) : []),
  ];
  return found.map(({ kind }) => kind);
}

/** Said on the way, true there, and over at the end. */
const PASSING: Readonly<Record<string, readonly string[]>> = {
  // Half of the attempts ran into the token limit in step 17, 2 % in the last one.
  'email-search.json': ['truncation'],
  // No attempt earned anything in three of the first four steps.
  'external-rewards.json': ['no-variance'],
};

test.each(filesOf('succeeds'))('%s is told nothing at its end, and only what passes on the way', (name) => {
  const { steps, evaluated, after } = readCurve(fileOf('succeeds', name));
  const [end, ...before] = evaluated.toReversed();
  expect(toldOf(after(end!))).toEqual([]);
  const passed = [...steps.flatMap((step) => linesOf(after(step))), ...before.flatMap((step) => toldOf(after(step)))];
  expect([...new Set(passed.map((told) => told.split(':')[0]))]).toEqual(PASSING[name] ?? []);
});

test.each(filesOf('fails'))('%s fails: its page says first what its name says, and the terminal warns', (name) => {
  const { evaluated, after } = readCurve(fileOf('fails', name));
  const { state, steps } = after(evaluated.at(-1)!);
  const [first] = findAdvisories(steps, state.evals);
  expect(first).toMatchObject({ kind: name.replace('.json', ''), level: 'alarm' });
  expect(warnOfTraining(steps, state.evals)).not.toEqual([]);
});
