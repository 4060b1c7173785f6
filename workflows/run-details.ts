/** A run as Temporal's UI shows it: markdown for `setCurrentDetails`, well below its limit of 20 KB. */
import type { EvalResult, RunState, StepSummary } from '../core/contract/contract.ts';
import { describeInProgress } from '../core/plan/run-summary.ts';
import { describeSpending } from '../core/rules/judge-spending.ts';
import { describeLineage } from '../core/names/lineage.ts';
import { describeChange } from '../core/rules/settings.ts';
import type { TrainingWarning } from '../core/reports/training-warnings.ts';

const MAX_SHOWN_NOTES = 5;

export function describeRun(
  state: RunState,
  recent: readonly StepSummary[],
  warnings: readonly TrainingWarning[] = [],
): string {
  const parts = [
    headline(state),
    facts(state),
    failure(state),
    ...warnings.map(({ text }) => `**Warning**: ${text}`),
    curve(recent),
    notes(state.notes),
    commands(state.run),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function headline(state: RunState): string {
  return `### ${state.run}: ${state.state}, step ${state.step} of ${state.steps}`;
}

function facts(state: RunState): string {
  const lineage = describeLineage(state.lineage);
  return [
    `- **phase** ${state.phase}`,
    `- **waiting for** ${state.waitingFor ?? 'nothing'}`,
    ...(state.overlap?.length ? [`- **in progress** ${state.overlap.map(describeInProgress).join(', ')}`] : []),
    `- **reward** ${shown(state.reward)}`,
    ...(state.judging ? [`- **judging** ${describeSpending(state.judging)}`] : []),
    `- **agent** ${state.agent} on ${state.baseModel}`,
    ...(lineage === null ? [] : [`- **position** ${lineage}`]),
    ...state.changes.slice(-MAX_SHOWN_NOTES).map((change) => `- **changed** ${describeChange(change, state.branch)}`),
    ...state.evals.slice(-MAX_SHOWN_NOTES).map(evaluation),
  ].join('\n');
}

function evaluation(result: EvalResult): string {
  const metrics = Object.entries(result.metrics).map(([name, value]) => `${name.replace(/Rate$/, '')} ${shown(value)}`);
  return `- **eval after step ${result.step}** ${[`reward ${shown(result.reward)}`, ...metrics].join(' · ')}`;
}

function failure({ failure: text }: RunState): string {
  return text === null ? '' : `**Failed**: ${text}`;
}

function curve(recent: readonly StepSummary[]): string {
  if (recent.length === 0) return '';
  const rows = recent.map(
    ({ step, reward, groups, examples, train, replacedGroups, failedAttempts, seconds }) =>
      `| ${step} | ${shown(reward)} | ${examples === undefined ? groups : `${examples} examples, loss ${shown(train['loss'] ?? null)}`} | ${replacedGroups} | ${failedAttempts} | ${(seconds['step'] ?? 0).toFixed(1)} |`,
  );
  return [
    '| step | reward | groups trained | replaced | failed attempts | seconds |',
    '| ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ].join('\n');
}

function notes(lines: readonly string[]): string {
  return lines
    .slice(-MAX_SHOWN_NOTES)
    .map((line) => `> ${line}`)
    .join('\n>\n');
}

function commands(run: string): string {
  return [
    `- \`temper report ${run}\` writes curves, groups and conversations as one page`,
    `- \`temper show ${run}\` · \`temper show ${run} --follow\` · \`temper stop ${run}\` (finish the step, keep the result)`,
    `- \`temper pause ${run}\` · \`temper resume ${run}\` · \`temper set ${run} KEY=VALUE\` · \`temper rollback ${run} --step N\``,
  ].join('\n');
}

function shown(value: number | null): string {
  return value === null ? 'none yet' : value.toFixed(3);
}
