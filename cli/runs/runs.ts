import { sumUsd } from '../../core/rules/costs.ts';
import { shortModelName } from '../../core/reports/describe-config.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import type { CommandContext } from '../command-line/command.ts';
import { describeError, EXIT } from '../command-line/errors.ts';
import { describeHeadline, formatDuration, formatNumber, olderThan } from '../../core/reports/format.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { runsCommand } from './command.ts';
import { readRuns } from './read-runs.ts';
import { summariseRun, type RunSummary } from './run-summary.ts';
import { createTable } from '../terminal/table.ts';

export async function runs({ flags, project, env, output }: CommandContext<typeof runsCommand>): Promise<number> {
  const store = await openProjectStore(project, env);
  const broken: unknown[] = [];
  const found = await readRuns(store, (error) => broken.push(error));
  const summaries = found.map((run) => summariseRun(run, store.uri));
  if (flags.json) printJson(output, summaries);
  else if (found.length + broken.length === 0) output.line('no runs yet; start one with temper train AGENT');
  else if (summaries.length > 0) output.line(renderTable(summaries));
  for (const error of broken) output.errorLine(describeError(error).text);
  return broken.length === 0 ? EXIT.ok : EXIT.failed;
}

function renderTable(summaries: readonly RunSummary[]): string {
  const hasCosts = summaries.some(isPaid);
  const head = ['run', 'agent', 'model', 'state', 'step', 'before', 'after', 'reward', 'time'];
  return createTable(
    hasCosts ? [...head, 'cost'] : head,
    summaries.map(({ result: { evalBefore, evalAfter }, ...summary }) => [
      summary.run,
      summary.agent,
      shortModelName(summary.baseModel),
      summary.state,
      `${summary.step}/${summary.steps}`,
      evalBefore === null ? describeLoss(summary.heldOutLoss?.before) : describeHeadline(evalBefore),
      evalAfter === null
        ? describeLoss(summary.heldOutLoss?.after)
        : describeHeadline(evalAfter) + olderThan(summary.step, evalAfter),
      formatNumber(summary.reward),
      formatDuration(summary.wallSeconds),
      ...(hasCosts ? [isPaid(summary) ? `$${formatUsd(sumUsd(summary.costs!.usd))}` : '–'] : []),
    ]),
  );
}

/** Held-out loss of a run without evaluations. */
function describeLoss(value: number | undefined): string {
  return value === undefined ? '–' : `loss ${formatNumber(value)}`;
}

function isPaid({ costs }: Pick<RunSummary, 'costs'>): boolean {
  return costs !== null && Object.keys(costs.usd).length > 0;
}
