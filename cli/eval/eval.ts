import { join, relative, resolve } from 'node:path';
import { STATE_FOLDER } from '../../workers/project/folders.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import { version } from '../../workers/version.ts';
import { writePage } from '../report/shell.ts';
import { printJson } from '../terminal/output.ts';
import type { EvalContext } from './command.ts';
import { renderEvalReport } from './eval-page.ts';
import { evalLines } from './lines.ts';
import { playAll } from './play-all.ts';
import { readPlannedEval } from './read-planned-eval.ts';
import { summariseOutcomes, type EvalSummary } from './summarise.ts';

export async function evaluate(context: EvalContext): Promise<number> {
  const plan = await readPlannedEval(context);
  const outcomes = await playAll(plan, context);
  const { agentFile, scenarios, notes } = plan;
  const summary = summariseOutcomes(agentFile.agent.name, scenarios, notes, outcomes);
  const file = reportFile(context, summary.agent);
  const scenarioIds = scenarios.map(({ id }) => id);
  await writePage(file, renderEvalReport({ summary, outcomes, scenarioIds, version: version() }));
  tell(context, summary, file);
  return checkPlayed(summary);
}

function reportFile({ flags, cwd, project }: EvalContext, agent: string): string {
  return flags.out === null ? join(project, STATE_FOLDER, 'reports', `eval-${agent}.html`) : resolve(cwd, flags.out);
}

function tell({ flags, output, cwd }: EvalContext, summary: EvalSummary, file: string): void {
  if (flags.json) printJson(output, summary);
  else for (const line of [...evalLines(summary), `report: ${relative(cwd, file) || file}`]) output.line(line);
}

/** A model of which nothing came is no baseline. */
function checkPlayed({ models }: EvalSummary): number {
  const bad = models.filter(({ error, failed, attempts }) => error !== null || failed === attempts);
  const [first] = bad;
  if (first === undefined) return EXIT.ok;
  const reason =
    first.error ?? `all ${first.attempts} attempts failed, the first with: ${first.failures[0] ?? 'no message'}`;
  throw new WorkFailed(models.length === 1 ? reason : `${first.model}: ${reason}`);
}
