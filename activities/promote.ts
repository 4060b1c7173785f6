/** `promote`: a firing's checkpoint becomes the production of the run that it learned from, unless it is worse. */
import { PromoteInput, type Checkpoint, type Promoted } from '../core/contract/contract.ts';
import { compareEvaluations, type PairedComparison } from '../core/numbers/compare-evaluations.ts';
import { mean } from '../core/numbers/statistics.ts';
import { policyName } from '../core/names/policy-name.ts';
import { branchOfStep } from '../core/names/lineage.ts';
import { evalRolloutsKey } from '../store/layout.ts';
import { readRollouts, requireFile } from '../store/records/groups/group-files.ts';
import {
  firingPromotionKey,
  promotionsInEffect,
  recordPromotion,
  type Promotion,
} from '../store/records/runs/promotions.ts';
import { readEval, requireRun } from '../store/records/runs/run-reader.ts';
import type { AttemptRecord } from '../store/records/groups/trajectories.ts';
import { asActivity } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createPromoteActivities(dependencies: Dependencies) {
  const { store, logger } = dependencies;

  /** One row for a firing: who asks again is told what the first one decided. */
  async function promote(input: PromoteInput): Promise<Promoted> {
    const { schedule, number, served, checkpoint, state } = input;
    const { run, step, lineage } = state;
    const { parent } = (await requireRun(store, run)).file.config;
    const [before, after] = await Promise.all([
      readAttempts(run, 0, 0),
      readAttempts(run, branchOfStep(lineage, step), step),
    ]);
    const compared = before && after && compareEvaluations(after, before);
    const { row } = await recordPromotion(store, served, (rows) => {
      const promoted = promotionsInEffect(rows).at(-1) ?? null;
      const problem =
        findConflict(promoted, checkpoint, parent) ?? (compared === null ? NOT_EVALUATED : compared.problem);
      return {
        kind: problem === null ? 'promoted' : 'refused',
        checkpoint,
        by: `schedule ${schedule}`,
        reason: problem,
        evaluation: after && evaluationOf(after),
        comparison: before && after && compared && toNumbers(compared, before, after),
        key: firingPromotionKey(schedule, number),
      };
    });
    logger.info({ run, served, kind: row.kind, reason: row.reason }, 'compared for promotion');
    return { reason: row.kind === 'promoted' ? null : (row.reason ?? row.kind) };
  }

  /** Null: there was no evaluation, as after the last step of a run that was stopped. */
  async function readAttempts(run: string, branch: number, step: number): Promise<AttemptRecord[] | null> {
    const place = { run, branch, step };
    const found = await readRollouts(store, evalRolloutsKey(place));
    if (found === null && (await readEval(store, place)) === null) return null;
    return requireFile(found, evalRolloutsKey(place)).rollouts.attempts;
  }

  return { promote: asActivity(dependencies, PromoteInput, promote) };
}

const NOT_EVALUATED = 'it was not evaluated: its run ended before the evaluation after the last step';

/** The evaluation before the first step is that of `parent`, which the run started from. */
function findConflict(promoted: Promotion | null, { step }: Checkpoint, parent: Checkpoint | null): string | null {
  if (step === 0) return 'its run has trained nothing';
  if (promoted === null || isSame(promoted.checkpoint, parent)) return null;
  const name = policyName(promoted.checkpoint);
  return `${name} was promoted while it was trained, and its evaluation is compared with ${parent && policyName(parent)}`;
}

function isSame(left: Checkpoint, right: Checkpoint | null): boolean {
  return left.manifestSha256 === right?.manifestSha256;
}

const rewardsOf = (attempts: readonly AttemptRecord[]): number[] => attempts.flatMap(({ reward }) => reward ?? []);

function evaluationOf(attempts: readonly AttemptRecord[]): { reward: number; scenarios: number } | null {
  const reward = mean(rewardsOf(attempts));
  return reward === null ? null : { reward, scenarios: attempts.length };
}

/** Without what is not a number. */
function toNumbers(
  { difference, pairs }: PairedComparison,
  before: readonly AttemptRecord[],
  after: readonly AttemptRecord[],
): Record<string, number> {
  const numbers = {
    before: mean(rewardsOf(before)),
    after: mean(rewardsOf(after)),
    difference: difference?.mean ?? null,
    low: difference?.low ?? null,
    high: difference?.high ?? null,
    scenarios: pairs,
  };
  return Object.fromEntries(Object.entries(numbers).filter((entry): entry is [string, number] => entry[1] !== null));
}
