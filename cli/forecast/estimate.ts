/** Tokens, time and cost of a planned run, before it starts: `--estimate`, and the first line of a run that costs money. */
import { isAwaited } from '../../core/rules/external-rewards.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { REWARD_GROUP } from '../../core/rules/named-rewards.ts';
import { SUPERVISED_AGENT } from '../../core/rules/supervised.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { EXIT } from '../command-line/errors.ts';
import type { RunPlan } from '../planning/run-plan.ts';
import { printJson } from '../terminal/output.ts';
import { estimateRun, findLike, type Basis } from './estimate-run.ts';
import { estimateLines, summariseEstimate } from './lines.ts';
import { playProbe } from './probe.ts';

interface EstimateContext extends CommandEnvironment {
  readonly flags: EngineFlags & { readonly json: boolean; readonly probe: boolean; readonly like: string | null };
}

export async function printEstimate(context: EstimateContext, plan: RunPlan): Promise<number> {
  const { flags, output } = context;
  const { config } = plan;
  const { basis, forecast, price } = await estimateRun(context, plan, await findBasis(context, plan));
  const measured = { run: basis.run, steps: basis.measured.steps.length };
  if (flags.json) printJson(output, { run: config.run, measured, price, ...forecast });
  else for (const line of estimateLines(config, { basis, forecast, price })) output.line(line);
  return EXIT.ok;
}

async function findBasis(context: EstimateContext, plan: RunPlan): Promise<Basis> {
  const { flags } = context;
  if (flags.probe) return playProbe(context, plan, flags);
  const { agent, baseModel } = plan.config;
  const found = await findLike(context, plan, flags.like);
  if (found !== null) return found;
  if (flags.like !== null)
    throw badConfig(`the run ${flags.like} has no step that was played; choose another one for --like`);
  throw badConfig(
    `no run of ${agent} on ${baseModel} is in ${plan.store.uri} to measure; pass --probe, which plays four steps`,
  );
}

/** Hardware with a price, or a hosted model that judges or plays. */
export function isPaid({ config, isComplete }: Pick<RunPlan, 'config' | 'isComplete'>): boolean {
  const { gpuUsdPerHour, judge, roles = {}, production, agent } = config;
  if (isComplete || production !== undefined || agent === SUPERVISED_AGENT) return false;
  const isJudged = judge !== null && judge !== REWARD_GROUP && !isAwaited(judge) && !judge.startsWith('engine/');
  return (gpuUsdPerHour ?? 0) > 0 || isJudged || Object.values(roles).some(({ kind }) => kind === 'hosted');
}

export async function summariseCost(context: CommandEnvironment, plan: RunPlan): Promise<string> {
  const basis = await findLike(context, plan, null);
  return basis === null
    ? 'estimate: nothing was measured yet; temper train --estimate --probe plays four steps and prints tokens, time and cost'
    : summariseEstimate(await estimateRun(context, plan, basis));
}
