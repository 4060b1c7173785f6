import { playRun } from '../train/play-run.ts';
import type { ForkContext } from './command.ts';
import { readPlannedFork } from './read-planned-fork.ts';

export async function fork(context: ForkContext): Promise<number> {
  return playRun(context, await readPlannedFork(context), context.flags);
}
