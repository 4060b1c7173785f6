/** `promote`: a firing's checkpoint becomes the production of the run that it learned from, unless it is worse. */
import { PromoteInput, type Checkpoint, type Promoted } from '../core/contract.ts';
import { compareEvaluations, type PairedComparison } from '../core/compare-evaluations.ts';
import { mean } from '../core/statistics.ts';
import { policyName } from '../core/policy-name.ts';
import { branchOfStep } from '../core/lineage.ts';
import { evalRolloutsKey } from '../store/layout.ts';
import { readRollouts, requireFile } from '../store/records/group-files.ts';
import { findPromoted, firingPromotionKey, recordPromotion } from '../store/records/promotions.ts';
import { requireRun } from '../store/records/run-reader.ts';
import type { AttemptRecord } from '../store/records/trajectories.ts';
import { asActivity } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createPromoteActivities(dependencies: Dependencies) {
  const { store, logger } = dependencies;

  /** One row for a firing: who asks again is told what the first one decided. */
  async function promote(input: PromoteInput): Promise<Promoted> {
    const { schedule, number, served, checkpoint, state } = input;
    const { run, step, lineage } = state;
    const [before, after] = await Promise.all([
      readAttempts(run, 0, 0),
      readAttempts(run, branchOfStep(lineage, step), step),
    ]);
    const compared = compareEvaluations(after, before);
    const problem = (await findConflict(input)) ?? compared.problem;
    const { row } = await recordPromotion(store, served, {
      kind: problem === null ? 'promoted' : 'refused',
      checkpoint,
      by: `schedule ${schedule}`,
      reason: problem,
      evaluation: evaluationOf(after),
      comparison: toNumbers(compared, before, after),
      key: firingPromotionKey(schedule, number),
    });
    logger.info({ run, served, kind: row.kind, reason: row.reason }, 'compared for promotion');
    return { reason: row.kind === 'promoted' ? null : (row.reason ?? row.kind) };
  }

  /** The evaluation before the first step is that of the checkpoint that the run started from. */
  async function findConflict({ served, checkpoint, state }: PromoteInput): Promise<string | null> {
    const { parent } = (await requireRun(store, state.run)).file.config;
    if (checkpoint.step === 0) return 'its run has trained nothing';
    const promoted = await findPromoted(store, served);
    if (promoted === null || isSame(promoted.checkpoint, parent)) return null;
    const name = policyName(promoted.checkpoint);
    return `${name} was promoted while it was trained, and its evaluation is compared with ${parent && policyName(parent)}`;
  }

  async function readAttempts(run: string, branch: number, step: number): Promise<AttemptRecord[]> {
    const key = evalRolloutsKey({ run, branch, step });
    return requireFile(await readRollouts(store, key), key).rollouts.attempts;
  }

  return { promote: asActivity(dependencies, PromoteInput, promote) };
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
