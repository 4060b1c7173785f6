/** A step whose groups wait for rewards from outside, all of them. */
import type { GroupResult } from '../core/contract.ts';
import { planGroups, type PlayPosition } from '../core/plan-step.ts';
import { awaitRewards } from './awaited-rewards.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/**
 * The step's groups with their rewards, once all of them are decided; groups without signal are replaced. Null if the run
 * is stopped before that: they keep their rewards, and a run that continues takes the step up again.
 */
export async function playAndAwait(
  run: Run,
  inHand: StepInHand,
  position: PlayPosition,
  play: (played: GroupResult[]) => Promise<unknown>,
): Promise<GroupResult[] | null> {
  const { status, controls, queues } = run;
  const { config } = controls;
  const played: GroupResult[] = [];
  for (let round = 0; round <= config.replacementRounds; round++) {
    status.enterPhase(inHand, 'rollout', `play step ${inHand.step}`, queues.rollout);
    await play(played);
    const groups = planGroups(config, position, played);
    const decided = await awaitRewards(run, inHand, groups);
    played.push(...decided);
    if (decided.length === groups.length) continue;
    const left = groups.length - decided.length;
    status.note(
      `${left} of ${groups.length} groups of step ${inHand.step} wait for rewards; a run that continues trains them`,
    );
    return null;
  }
  return played;
}
