/**
 * Steps from what is complete (`--groups-ahead`): a step plays groups until its window is full, and waits until as many
 * as it trains are complete, of whatever step they are. The others stay open, for days if need be, and across
 * continue-as-new, rollbacks and restarts: people have worked for them.
 */
import type { GroupResult, OpenGroup, RolloutInput } from '../core/contract.ts';
import type { PlayedPlace } from '../core/plan-given.ts';
import { trainedGroups, type RunPosition } from '../core/plan-step.ts';
import { canChoose, isFresh, planChoice, planTopUp, withPlayed, withResults } from '../core/plan-window.ts';
import { awaitRewards, closeRewards } from './awaited-rewards.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** A step's window, and the groups that leave it; null if the run is stopped before enough of them are complete. */
export interface ChosenStep {
  position: RunPosition;
  chosen: GroupResult[] | null;
}

export async function chooseFromWindow(
  run: Run,
  inHand: StepInHand,
  start: RunPosition,
  play: (groups: RolloutInput[]) => Promise<GroupResult[]>,
): Promise<ChosenStep> {
  const { status, controls, activities, queues } = run;
  const { config } = controls;
  const stale = await closeRewards(
    run,
    waiting(start, (group) => !isFresh(config, group)),
    'stale',
  );
  const dealt = planTopUp(config, start);
  status.enterPhase(inHand, 'rollout', `play step ${inHand.step}`, queues.rollout);
  const window = withPlayed(withResults(start, stale), dealt, await play(dealt));

  const decided = await awaitRewards(
    run,
    inHand,
    waiting(window, (group) => isFresh(config, group)),
    {
      isEnough: (results) => canChoose(config, withResults(window, results)),
      describe: (results) => ({
        complete: countComplete(run, withResults(window, results)),
        needed: config.groupsPerStep,
      }),
    },
  );
  const position = withResults(window, decided);
  if (!canChoose(config, position)) return { position, chosen: null };
  status.enterPhase(inHand, 'judge', `decide what step ${inHand.step} trains`, queues.rollout);
  const { groups: chosen, usage } = await activities.choose(planChoice(config, position));
  inHand.usage = usage;
  return { position: withResults(position, chosen), chosen };
}

/** Tells how many groups a run leaves behind. */
export function noteOpenGroups({ status, controls }: Run, { open = [] }: RunPosition): void {
  const left = open.filter((group) => isFresh(controls.config, group));
  if (left.length === 0) return;
  const count = left.filter(({ result }) => result.use === 'unjudged').length;
  const groups = left.length === 1 ? 'group is' : 'groups are';
  status.note(`${left.length} ${groups} still open, ${count} waiting for rewards; a run that continues trains them`);
}

function countComplete({ controls }: Run, { open = [] }: RunPosition): number {
  return trainedGroups(open.filter((group) => isFresh(controls.config, group)).map(({ result }) => result)).length;
}

function waiting({ open = [] }: RunPosition, isMeant: (group: OpenGroup) => boolean): PlayedPlace[] {
  const meant = open.filter((group) => group.result.use === 'unjudged' && isMeant(group));
  return meant.map(({ branch, inputsSha256, result: { step, group, scenario } }) => {
    return { branch, step, group, scenario, inputsSha256 };
  });
}
