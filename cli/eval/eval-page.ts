/** Page of `temper eval`: models side by side, and their attempts at the same scenarios. */
import { planMeasures, type EvalSummary, type Outcome } from './summarise.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { AttemptView, GroupView } from '../../views/api/attempt-views.ts';
import type { EvaluationView } from '../../views/api/evaluation-view.ts';
import { clipText } from '../../views/attempts/messages.ts';
import { NO_NEIGHBOURS } from '../../views/attempts/place.ts';
import { NO_VERDICT } from '../../views/attempts/verdict.ts';
import { viewAttempt } from '../../views/attempts/view-attempt.ts';
import { attemptRows } from '../../views/rows/attempt-row.ts';
import { AnswerFile, exportInfo, FILE_BOUNDS, FILE_GROUP_BOUNDS } from '../pages/one-file.ts';

/** Scenarios whose attempts are shown. */
const MOST_SCENARIOS = 24;

export interface EvalReport {
  readonly summary: EvalSummary;
  readonly outcomes: readonly Outcome[];
  readonly scenarioIds: readonly string[];
}

export async function renderEvalReport({ summary, outcomes, scenarioIds }: EvalReport): Promise<string> {
  const { agent, scenarios, models, notes } = summary;
  const groups = compareAttempts(outcomes, scenarioIds);
  const view: EvaluationView = {
    agent,
    scenarios,
    models: models.map(({ model, attempts, failed }) => ({ model, attempts, failed })),
    measures: planMeasures(summary),
    notes: [...notes, ...troubles(summary)],
    groups,
    leftOut: groups.length === 0 ? 0 : scenarioIds.length - groups.length,
  };
  const answers = new AnswerFile();
  await answers.add('evaluation', view);
  await answers.add('info', exportInfo('', null));
  return answers.render(`${agent}, ${models.map(({ model }) => model).join(' · ')}`, '/evaluation');
}

function troubles({ models }: EvalSummary): string[] {
  return models.flatMap(({ model, failed, attempts, failures, error }) => [
    ...(failed > 0 ? [`${failed} of ${attempts} attempts of ${model} failed, the first with: ${failures[0]}`] : []),
    ...(error === null ? [] : [`${model} was not evaluated: ${error}`]),
  ]);
}

/** Groups of attempts: one scenario, all models. */
function compareAttempts(outcomes: readonly Outcome[], scenarioIds: readonly string[]): GroupView[] {
  const played = outcomes.flatMap(({ model, played: games }) => (games === null ? [] : [{ model, games }]));
  if (played.length === 0) return [];
  const shown = scenarioIds.slice(0, MOST_SCENARIOS);
  const groups: GroupView[] = [];
  let room = FILE_BOUNDS.runBytes;
  for (const [index, id] of shown.entries()) {
    const attempts = played.flatMap(({ model, games }) => {
      const record = games.attempts[index];
      return record === undefined ? [] : [viewPlayed(record, model)];
    });
    const group = compared(clipText(id, 200), attempts);
    room -= JSON.stringify(group).length;
    if (room > 0) groups.push(group);
  }
  return groups;
}

/** Belongs to no run: it has no place in a store. */
function compared(id: string, attempts: readonly AttemptView[]): GroupView {
  const none = { scenarioValue: null, judge: null, comparisons: 0, leftOut: 0, neighbours: NO_NEIGHBOURS };
  return { run: '', id, title: id, row: null, scenario: id, attempts, ...none };
}

function viewPlayed(record: AttemptRecord, model: string): AttemptView {
  const place = { branch: 0, step: 0 };
  const files = { place, group: null, judged: null, times: null, use: 'eval' } as const;
  const [row] = attemptRows({ ...files, rollouts: { header: {}, attempts: [record] } });
  const facts = {
    times: null,
    givenRows: [],
    adapterSha256: null,
    policy: null,
    neighbours: NO_NEIGHBOURS,
    ...NO_VERDICT,
  };
  return viewAttempt(record, { ...facts, row: row!, title: model }, FILE_GROUP_BOUNDS);
}
