/** `temper train`: plans the run, then plays it to its end, or only estimates it. */
import { badConfig } from '../../core/contract/failures.ts';
import { findParent } from '../planning/find-parent.ts';
import { planRun, type PlanMode, type RunRequest } from '../planning/draft-run.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { findServingParent } from '../planning/read-production.ts';
import type { RunPlan } from '../planning/run-plan.ts';
import { readRunSource } from '../planning/run-source.ts';
import { readCheckpointName } from '../command-line/values.ts';
import type { TrainContext } from './command.ts';

export async function train(context: TrainContext): Promise<number> {
  const { flags, output } = context;
  const plan = await planTrain(context, flags.estimate ? 'estimate' : 'now');
  const { isPaid, printEstimate, summariseCost } = await import('../forecast/estimate.ts');
  if (flags.estimate) return printEstimate(context, plan);
  if (isPaid(plan)) output.line(await summariseCost(context, plan));
  const { playRun } = await import('../session/play-run.ts');
  return playRun(context, plan, flags);
}

export function planTrain(context: TrainContext, mode: PlanMode): Promise<RunPlan> {
  const { flags, args } = context;
  const source = readRunSource({ source: args.source, flags });
  const name = flags.run === null ? null : checkRunName(flags.run);
  const from = flags.from === null ? null : readCheckpointName(flags.from);
  if (source.kind === 'agent' && from !== null && name === null)
    throw badConfig('--run is missing; pass --run NAME, the name of the new run');
  const request: RunRequest & { engine: TrainContext['flags'] } = {
    source,
    name,
    async start(store, recorded) {
      if (from !== null) return findParent(store, from, recorded);
      return source.kind === 'production' ? findServingParent(store, source.production, recorded) : null;
    },
    flags,
    engine: flags,
  };
  return planRun(context, request, mode);
}
