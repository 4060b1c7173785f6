import { badConfig } from '../../core/failures.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import type { RunPlan } from '../planning/plan-run.ts';
import { printJson } from '../terminal/output.ts';
import { planTrain } from '../train/plan-train.ts';
import type { EstimateContext } from './command.ts';
import { estimateRun, findLike, type Basis, type Estimated } from '../forecast/estimate-run.ts';
import { estimateLines } from '../forecast/lines.ts';
import { playProbe } from './probe.ts';

export async function estimate(context: EstimateContext): Promise<number> {
  const { flags, output } = context;
  if (flags['from-production'] !== null)
    throw new UsageError('temper estimate has no use for --from-production (no attempt is played); leave it out');
  if (flags.probe && flags.like !== null)
    throw new UsageError('--probe and --like exclude each other; pass one of them');
  const idle = (['track', 'trace'] as const).find((name) => flags[name].length > 0);
  if (idle !== undefined)
    throw new UsageError(`--${idle} has no effect on an estimate (nothing is told); leave it out`);
  const plan = await planTrain(context);
  const estimated = await estimateRun(context, plan, await findBasis(context, plan));
  if (flags.json) printJson(output, toJson(plan, estimated));
  else for (const line of estimateLines(plan.config, estimated)) output.line(line);
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

function toJson({ config }: RunPlan, { basis, forecast, price }: Estimated): object {
  return { run: config.run, measured: { run: basis.run, steps: basis.measured.steps.length }, price, ...forecast };
}
