/** `judge`: the verdict on a step, from what was played for it and what was judged of that: what is trained, and what not. */
import pLimit from 'p-limit';

import { JudgeInput, type GroupRef, type JudgeResult } from '../core/contract.ts';
import { addUsages } from '../core/costs.ts';
import { TemperError } from '../core/failures.ts';
import { hashOf } from '../core/hashes.ts';
import { hashJudging, toGroupRef } from '../core/plan-step.ts';
import { WHOLE_GROUPS_AT_ONCE } from '../store/records/children.ts';
import {
  publishStepVerdict,
  readDecidedGroup,
  toStepVerdict,
  type DecidedGroup,
} from '../store/records/step-verdict.ts';
import { asActivity, checkInputs } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createJudgeActivities(dependencies: Dependencies) {
  const { store, prices } = dependencies;

  async function judge(input: JudgeInput): Promise<JudgeResult> {
    const limit = pLimit(WHOLE_GROUPS_AT_ONCE);
    const decide = (ref: NamedGroup) => readDecidedGroup(store, input, { ...input, group: ref.group }, ref, prices);
    const decided = await Promise.all(named(input).map((ref) => limit(() => decide(ref))));
    if (input.played !== undefined) checkPlayed(input, decided);
    const recorded = await publishStepVerdict(store, input, toStepVerdict(input.inputsSha256, decided));
    const what = `the verdict on step ${input.step} of the run ${input.run}`;
    checkInputs(what, recorded.inputsSha256, input.inputsSha256);
    const groups = decided.map(({ result }) => result);
    const usage = addUsages(decided.map((group) => group.usage));
    // They are more than an answer holds. What the trainer finds in the verdict is held to what the workflow has.
    if (input.played !== undefined) return { groups: null, usage };
    return { groups: hashOf(groups) === input.resultsSha256 ? null : groups, usage };
  }

  return { judge: asActivity(dependencies, JudgeInput, judge) };
}

/** A large step has only the hash of all groups. */
type NamedGroup = Pick<GroupRef, 'group'> & Partial<GroupRef>;

function named({ groups, played }: JudgeInput): NamedGroup[] {
  return played === undefined ? groups : Array.from({ length: played }, (_, group) => ({ group }));
}

function checkPlayed(input: JudgeInput, decided: readonly DecidedGroup[]): void {
  const groups = decided.map(({ result }) => toGroupRef(result));
  if (hashJudging({ ...input, groups }) === input.inputsSha256) return;
  const rule = `the ${groups.length} groups of step ${input.step} of the run ${input.run} must be those that were played`;
  throw new TemperError('StoreCorrupt', `${rule}, but files of them have changed; restore them from a copy of the run`);
}
