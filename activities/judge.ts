/** `judge`: the verdict on a step, from what was played for it and what was judged of that: what is trained, and what not. */
import pLimit from 'p-limit';

import { JudgeInput, type GroupRef, type JudgeResult } from '../core/contract.ts';
import { addUsages } from '../core/costs.ts';
import { hashOf } from '../core/hashes.ts';
import { WHOLE_GROUPS_AT_ONCE } from '../store/records/children.ts';
import { publishStepVerdict, readDecidedGroup, toStepVerdict } from '../store/records/step-verdict.ts';
import { asActivity, checkInputs } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createJudgeActivities(dependencies: Dependencies) {
  const { store, prices } = dependencies;

  async function judge(input: JudgeInput): Promise<JudgeResult> {
    const limit = pLimit(WHOLE_GROUPS_AT_ONCE);
    const decide = (ref: GroupRef) => readDecidedGroup(store, input, { ...input, group: ref.group }, ref, prices);
    const decided = await Promise.all(input.groups.map((ref) => limit(() => decide(ref))));
    const recorded = await publishStepVerdict(store, input, toStepVerdict(input.inputsSha256, decided));
    const what = `the verdict on step ${input.step} of the run ${input.run}`;
    checkInputs(what, recorded.inputsSha256, input.inputsSha256);
    const groups = decided.map(({ result }) => result);
    const usage = addUsages(decided.map((group) => group.usage));
    return { groups: hashOf(groups) === input.resultsSha256 ? null : groups, usage };
  }

  return { judge: asActivity(dependencies, JudgeInput, judge) };
}
