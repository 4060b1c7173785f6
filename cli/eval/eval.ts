import { join, relative, resolve } from 'node:path';
import { STATE_FOLDER } from '../../workers/project/folders.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import { version } from '../../workers/version.ts';
import { writePage } from '../report/shell.ts';
import { printJson } from '../terminal/output.ts';
import type { EvalContext } from './command.ts';
import { renderEvalReport } from './eval-page.ts';
import { planEval, type EvalPlan } from './plan-eval.ts';
import { summariseOutcomes, type EvalSummary, planMeasures, type Outcome } from './summarise.ts';
import { shortModelName } from '../../core/describe-config.ts';
import { formatNumber } from '../../core/format.ts';
import type { Estimate } from '../../core/estimates.ts';
import { createTable } from '../terminal/table.ts';
import { TemperError } from '../../core/failures.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { openAgentResources } from '../../play/resources/open-agent-resources.ts';
import { withEngine } from './with-engine.ts';
import { playScenarios, type PlayOptions } from './play.ts';

export async function evaluate(context: EvalContext): Promise<number> {
  const { summary, file } = await compareModels(context);
  tell(context, summary, file);
  return checkPlayed(summary);
}

/** Changes the outcomes before they are summarised. */
type Judge = (outcomes: readonly Outcome[], plan: EvalPlan) => Promise<readonly Outcome[]>;

const JUDGE_NOTHING: Judge = (outcomes) => Promise.resolve(outcomes);

/** Plays all models, and writes the page. */
export async function compareModels(
  context: EvalContext,
  judge: Judge = JUDGE_NOTHING,
): Promise<{ readonly summary: EvalSummary; readonly file: string }> {
  const plan = await planEval(context);
  const played = await withEngine(plan, context, (engine) => playEach(plan, engine, context));
  const outcomes = await judge(played, plan);
  const { agentFile, scenarios, of, notes } = plan;
  const summary = summariseOutcomes(agentFile.agent.name, { played: scenarios.length, of }, notes, outcomes);
  const file = reportFile(context, summary.agent);
  const scenarioIds = scenarios.map(({ id }) => id);
  await writePage(file, await renderEvalReport({ summary, outcomes, scenarioIds, version: version() }));
  return { summary, file };
}

/** Plays models one after the other, because concurrent ones would distort latencies. */
async function playEach(plan: EvalPlan, engine: EngineAddress | null, context: CommandEnvironment): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const resources = openAgentResources(plan.agentFile.agent, plan.store);
  try {
    for (const player of plan.players) outcomes.push(await play({ plan, player, engine, resources }, context));
    return outcomes;
  } finally {
    await resources?.close();
  }
}

/** Catches the failure of one model, so that the results of the others are kept. */
async function play(
  played: Omit<PlayOptions, 'signal' | 'onProgress'>,
  { signal, output }: CommandEnvironment,
): Promise<Outcome> {
  const { plan, player } = played;
  const model = player.name;
  const onProgress = (done: number, of: number, waitingFor: string | null) => {
    const waiting = waitingFor === null ? '' : `, waiting for ${waitingFor}`;
    output.errorLine(`${model}: played ${done} of ${of}${waiting}`);
  };
  try {
    return { model, played: await playScenarios({ ...played, signal, onProgress }), error: null };
  } catch (error) {
    if (!(error instanceof TemperError) || signal.aborted || plan.players.length === 1) throw error;
    return { model, played: null, error: error.message };
  }
}

function reportFile({ flags, cwd, project }: EvalContext, agent: string): string {
  return flags.out === null ? join(project, STATE_FOLDER, 'reports', `eval-${agent}.html`) : resolve(cwd, flags.out);
}

function tell({ flags, output, cwd }: EvalContext, summary: EvalSummary, file: string): void {
  if (flags.json) printJson(output, summary);
  else for (const line of [...evalLines(summary), `report: ${relative(cwd, file) || file}`]) output.line(line);
}

/** Fails if a model has no successful attempt. */
export function checkPlayed({ models }: EvalSummary): number {
  const bad = models.filter(({ error, failed, attempts }) => error !== null || failed === attempts);
  const [first] = bad;
  if (first === undefined) return EXIT.ok;
  const reason =
    first.error ?? `all ${first.attempts} attempts failed, the first with: ${first.failures[0] ?? 'no message'}`;
  throw new WorkFailed(models.length === 1 ? reason : `${first.model}: ${reason}`);
}

/** Models side by side, one row for each measure. */
export function evalLines(summary: EvalSummary): string[] {
  const { agent, scenarios, of, models, notes } = summary;
  const rows = planMeasures(summary).map(({ label, values }) => [label, ...values.map(formatEstimate)]);
  const failed = models.some((model) => model.failed > 0)
    ? [['failed', ...models.map((each) => `${each.failed}`)]]
    : [];
  return [
    `${agent}: ${of > scenarios ? `${scenarios} of ${of}` : scenarios} scenarios`,
    ...createTable(['', ...models.map(({ model }) => shortModelName(model))], [...rows, ...failed]).split('\n'),
    '95 % intervals in brackets; tokens and dollars of a scenario',
    ...models.flatMap(({ model, totalCostUsd }) =>
      totalCostUsd === null ? [] : [`${model} cost ${formatNumber(totalCostUsd)} US dollars in all`],
    ),
    ...notes.map((note) => `note: ${note}`),
    ...models.flatMap(({ model, failures }) => failures.map((failure) => `failure of ${model}: ${failure}`)),
    ...models.flatMap(({ model, error }) => (error === null ? [] : [`${model} was not evaluated: ${error}`])),
  ];
}

function formatEstimate(estimate: Estimate | null): string {
  if (estimate === null) return '–';
  const { mean, low, high } = estimate;
  return `${formatNumber(mean)} (${formatNumber(low)} to ${formatNumber(high)})`;
}
