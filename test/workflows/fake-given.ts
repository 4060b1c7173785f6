/** A look at rewards from outside, in memory: see fake-activities.ts. */
import type { GroupResult, JudgeGivenInput, JudgeGivenResult, RolloutInput } from '../../core/contract/contract.ts';

/** `missing`: attempts of a group without a reward. */
export function lookAtGiven(
  asked: JudgeGivenInput,
  rollouts: readonly RolloutInput[],
  missing: (place: { step: number; group: number }) => number = () => 0,
  judge: (group: RolloutInput) => GroupResult,
): JudgeGivenResult {
  const decided: GroupResult[] = [];
  const waiting: JudgeGivenResult['waiting'] = [];
  for (const { step, group, branch = asked.branch, over } of asked.groups) {
    const ofStep = rollouts.filter((each) => each.branch === branch && each.step === step);
    const played = ofStep.find((each) => each.group === group)!;
    const left = over === undefined ? missing({ step, group }) : 0;
    if (left === 0) decided.push(judge(played));
    else waiting.push({ step, group, missing: left, attempts: played.attempts, playedAt: null });
  }
  return { decided, waiting };
}
