import type { TrainContext } from './command.ts';
import { playRun } from './play-run.ts';
import { readPlannedRun } from './read-planned-run.ts';

export async function train(context: TrainContext): Promise<number> {
  return playRun(context, await readPlannedRun(context), context.flags);
}
