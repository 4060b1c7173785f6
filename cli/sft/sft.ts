import { playRun } from '../train/play-run.ts';
import type { SftContext } from './command.ts';
import { readPlannedSft } from './read-planned-sft.ts';

export async function sft(context: SftContext): Promise<number> {
  return playRun(context, await readPlannedSft(context), context.flags);
}
