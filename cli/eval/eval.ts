import { join, relative, resolve } from 'node:path';
import { STATE_FOLDER } from '../../workers/project/folders.ts';
import { EXIT } from '../command-line/errors.ts';
import { writeWhole } from '../command-line/files.ts';
import { printJson } from '../terminal/output.ts';
import type { EvalContext } from './command.ts';
import { renderEvalReport } from './eval-page.ts';
import { judgeOutcomes } from './judge-outcomes.ts';
import { planEval, type EvalPlan } from './plan-eval.ts';
import { evalLines, summariseOutcomes, type EvalSummary, type Outcome, type Played } from './summarise.ts';
import { TemperError, WorkFailed } from '../../core/contract/failures.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { openAgentResources } from '../../play/resources/agent-resources.ts';
import { AttemptRunner, type RunnerOptions } from '../players/attempt-runner.ts';
import type { Player } from '../players/players.ts';
import { withEngine } from '../players/with-engine.ts';

/** Plays all models, and writes the page. */
export async function evaluate(context: EvalContext): Promise<number> {
  const plan = await planEval(context);
  const played = await withEngine(plan, context, (engine) => playEach(plan, engine, context));
  const { outcomes, notes } = await judgeOutcomes(played, plan, context);
  const { agentFile, scenarios, of } = plan;
  const summary = summariseOutcomes(agentFile.agent.name, { played: scenarios.length, of }, notes, outcomes);
  const file = reportFile(context, summary.agent);
  const scenarioIds = scenarios.map(({ id }) => id);
  const page = await renderEvalReport({ summary, outcomes, scenarioIds });
  await writeWhole('--out', file, page, 'replace');
  tell(context, summary, file);
  return checkPlayed(summary);
}

/** Plays models one after the other, because concurrent ones would distort latencies. */
async function playEach(plan: EvalPlan, engine: EngineAddress | null, context: CommandEnvironment): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const resources = openAgentResources(plan.agentFile.agent, plan.store);
  try {
    for (const player of plan.players) outcomes.push(await play(plan, player, { engine, resources }, context));
    return outcomes;
  } finally {
    await resources?.close();
  }
}

type Place = Pick<RunnerOptions, 'engine' | 'resources'>;

/** Catches the failure of one model, so that the results of the others are kept. */
async function play(plan: EvalPlan, player: Player, place: Place, context: CommandEnvironment): Promise<Outcome> {
  const model = player.name;
  try {
    return { model, played: await playScenarios(plan, player, place, context), error: null };
  } catch (error) {
    if (!(error instanceof TemperError) || context.signal.aborted || plan.players.length === 1) throw error;
    return { model, played: null, error: error.message };
  }
}

/** Each scenario once. */
async function playScenarios(
  { agentFile, scenarios, indexes, concurrency, asked }: EvalPlan,
  player: Player,
  place: Place,
  { signal, output }: CommandEnvironment,
): Promise<Played> {
  const runner = new AttemptRunner({
    ...place,
    agent: agentFile.agent,
    player,
    mode: player.hosted === null ? 'eval' : 'text',
    rollout: player.rollout,
    asked,
    concurrency,
    signal,
    of: scenarios.length,
    tell: (line) => output.errorLine(`${player.name}: ${line}`),
  });
  // Numbered as in a run, so that `run@step` samples the same answers as in the run's own evaluation.
  const planned = scenarios.map((scenario, attempt) => ({ attempt, scenarioIndex: indexes[attempt]!, scenario }));
  try {
    const played = await runner.all(planned.map((each) => runner.play(each)));
    return {
      attempts: played.map(({ record, asked: calls }) => ({ ...record, calls: [...calls] })),
      costs: played.flatMap(({ cost }) => cost ?? []),
    };
  } finally {
    await runner.close();
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
function checkPlayed({ models }: EvalSummary): number {
  const bad = models.filter(({ error, failed, attempts }) => error !== null || failed === attempts);
  const [first] = bad;
  if (first === undefined) return EXIT.ok;
  const reason =
    first.error ?? `all ${first.attempts} attempts failed, the first with: ${first.failures[0] ?? 'no message'}`;
  throw new WorkFailed(models.length === 1 ? reason : `${first.model}: ${reason}`);
}
