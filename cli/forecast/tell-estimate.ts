/** The first line of a run that costs money. */
import { isAwaited } from '../../core/external-rewards.ts';
import { REWARD_GROUP } from '../../core/named-rewards.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { RunPlan } from '../planning/plan-run.ts';
import { estimateRun, findLike } from './estimate-run.ts';
import { summariseEstimate } from './lines.ts';

/** Hardware with a price, or a hosted model that judges or plays. */
export function isPaid({ config, isComplete }: Pick<RunPlan, 'config' | 'isComplete'>): boolean {
  const { gpuUsdPerHour, judge, roles = {}, production } = config;
  if (isComplete || production !== undefined) return false;
  const isJudged = judge !== null && judge !== REWARD_GROUP && !isAwaited(judge) && !judge.startsWith('engine/');
  return (gpuUsdPerHour ?? 0) > 0 || isJudged || Object.values(roles).some(({ kind }) => kind === 'hosted');
}

export async function tellEstimate(context: CommandEnvironment, plan: RunPlan): Promise<void> {
  const basis = await findLike(context, plan, null);
  const line =
    basis === null
      ? 'estimate: nothing was measured yet; temper estimate --probe plays four steps and tells tokens, time and cost'
      : summariseEstimate(await estimateRun(context, plan, basis));
  context.output.line(line);
}
