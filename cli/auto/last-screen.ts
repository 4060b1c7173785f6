/** The end of `temper auto`: what was learned, where it is, and what can be done with it. */
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describeSpending } from '../../core/judge-spending.ts';
import { defaultReportFile } from '../report/write-report.ts';
import type { Estimate } from '../../core/estimates.ts';
import { formatNumber } from '../../core/format.ts';
import type { AutoWork } from './auto-work.ts';
import type { Evaluation } from './evaluation-stage.ts';
import { AGENT_FILE, EVALUATION_FILE, HELD_OUT_FILE, RUBRIC_FILE, TRAIN_FILE } from './file-names.ts';

/** `cwd`: the folder in which the command was called. */
export async function lastScreen({ folder, ledger }: AutoWork, cwd: string): Promise<string[]> {
  const evaluation = JSON.parse(await readFile(join(folder, EVALUATION_FILE), 'utf8')) as Evaluation;
  const { run } = evaluation;
  const shown = relative(cwd, folder) || '.';
  const place = /^[\w./-]+$/.test(shown) ? shown : JSON.stringify(shown);
  return [
    '',
    ...learnedLines(evaluation),
    `hosted models: ${describeSpending(ledger.spent)}`,
    `files in ${shown}: ${[AGENT_FILE, TRAIN_FILE, HELD_OUT_FILE, RUBRIC_FILE, EVALUATION_FILE].join(', ')}`,
    `report: ${relative(cwd, defaultReportFile(folder, run))}`,
    'next:',
    ...(shown === '.' ? [] : [`  cd ${place}`]),
    `  temper serve ${run}`,
    `  temper export ${run} --to ./exported`,
    `  temper fork ${run} ${AGENT_FILE} --run ${run}-more`,
  ];
}

export function learnedLines({ baseModel, run, judge, summary }: Evaluation): string[] {
  const [base, trained] = summary.models;
  const [before, after, difference] = [base?.reward, trained?.reward, trained?.rewardDifference];
  if (!before || !after || !difference) return [`${run} was trained; its evaluation has no rewards to compare`];
  const by = judge === null ? 'reward' : `score by ${judge}`;
  return [
    `${by} on ${summary.scenarios} held-out scenarios: ${formatNumber(before.mean)} for ${baseModel}, ${formatNumber(after.mean)} for ${run}`,
    `difference: ${signed(difference.mean)} (95 % interval ${signed(difference.low)} to ${signed(difference.high)}): ${verdictOf(difference, run)}`,
  ];
}

function verdictOf({ low, high }: Estimate, run: string): string {
  if (low > 0) return `${run} is better than its base model`;
  if (high < 0) return `${run} is worse than its base model; lower --learning-rate, or check the rubric`;
  return 'the interval includes 0, so the difference may be chance; train more steps, or hold out more scenarios';
}

function signed(value: number): string {
  return `${value > 0 ? '+' : ''}${formatNumber(value)}`;
}
