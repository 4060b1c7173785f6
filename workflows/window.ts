/**
 * Groups that wait for rewards from outside, of whatever step they are: for days if need be, and across continue-as-new,
 * rollbacks and restarts, since people have worked for them.
 */
import type { OpenGroup } from '../core/contract/contract.ts';
import type { PlayedPlace } from '../core/plan/given.ts';
import { trainedGroups, type PlayPosition } from '../core/plan/step.ts';
import { canChoose, isFresh, withResults } from '../core/plan/window.ts';
import { awaitRewards, closeRewards } from './awaited-rewards.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** Decides the groups whose policy is too old with the rewards that they have. */
export async function closeStale(run: Run, window: PlayPosition): Promise<PlayPosition> {
  const { config } = run.controls;
  const stale = waiting(window, (group) => !isFresh(config, group));
  return withResults(window, await closeRewards(run, stale, 'stale'));
}

/** Waits until a step can be made of the window, or the run is stopped. */
export async function awaitWindow(run: Run, inHand: StepInHand, window: PlayPosition): Promise<PlayPosition> {
  const { config } = run.controls;
  const groups = waiting(window, (group) => isFresh(config, group));
  const decided = await awaitRewards(run, inHand, groups, {
    isEnough: (results) => canChoose(config, withResults(window, results)),
    describe: (results) => ({
      complete: countComplete(run, withResults(window, results)),
      needed: config.groupsPerStep,
    }),
  });
  return withResults(window, decided);
}

/** Tells how many groups a run leaves behind. */
export function noteOpenGroups({ status, controls }: Run, { open }: PlayPosition): void {
  const left = open.filter((group) => isFresh(controls.config, group));
  if (left.length === 0) return;
  const count = left.filter(({ result }) => result.use === 'unjudged').length;
  const groups = left.length === 1 ? 'group is' : 'groups are';
  status.note(`${left.length} ${groups} still open, ${count} waiting for rewards; a run that continues trains them`);
}

function countComplete({ controls }: Run, { open }: PlayPosition): number {
  return trainedGroups(open.filter((group) => isFresh(controls.config, group)).map(({ result }) => result)).length;
}

function waiting({ open }: PlayPosition, isMeant: (group: OpenGroup) => boolean): PlayedPlace[] {
  const meant = open.filter((group) => group.result.use === 'unjudged' && isMeant(group));
  return meant.map(({ branch, inputsSha256, result: { step, group, scenario } }) => {
    return { branch, step, group, scenario, inputsSha256 };
  });
}
