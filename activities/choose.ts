/**
 * `choose`: the groups that a step takes from its window: the first that are complete are trained, and those that never
 * will be trained leave it. The step's verdict records the choice, so that it is made once, whoever asks, and when.
 */
import pLimit from 'p-limit';

import { ChooseInput, type ChooseResult, type GroupRef } from '../core/contract.ts';
import { addUsages } from '../core/costs.ts';
import { chooseFirst } from '../core/plan-window.ts';
import { placeOfGroup } from '../store/layout.ts';
import { WHOLE_GROUPS_AT_ONCE } from '../store/records/children.ts';
import {
  dealtAt,
  publishStepVerdict,
  readDecidedGroup,
  readStepVerdict,
  toStepVerdict,
  type ReadGroup,
} from '../store/records/step-verdict.ts';
import { asActivity, checkInputs } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createChooseActivities(dependencies: Dependencies) {
  const { store, prices } = dependencies;

  async function choose(input: ChooseInput): Promise<ChooseResult> {
    const recorded = (await readStepVerdict(store, input)) ?? (await publishChoice(input));
    const what = `the verdict on step ${input.step} of the run ${input.run}`;
    checkInputs(what, recorded.inputsSha256, input.inputsSha256);
    const decided = await decideAll(input, recorded.groups);
    return {
      groups: decided.map(({ result }, index) => ({ ...result, use: recorded.groups[index]!.use })),
      usage: addUsages(decided.map((group) => group.usage)),
    };
  }

  async function publishChoice(input: ChooseInput) {
    const judged = input.window.flatMap(({ judgedSha256, isStale, ...place }) =>
      judgedSha256 === null ? [] : { ...place, judgedSha256, isStale: isStale === true },
    );
    const decided = (await decideAll(input, judged)).map((group, index) =>
      judged[index]!.isStale ? { ...group, result: { ...group.result, use: 'stale' as const } } : group,
    );
    const chosen = new Set(
      chooseFirst(
        input.most,
        decided.map(({ result }) => result),
      ),
    );
    const leaving = decided.filter(({ result }) => chosen.has(result));
    return publishStepVerdict(store, input, toStepVerdict(input.inputsSha256, leaving));
  }

  function decideAll(input: ChooseInput, refs: readonly GroupRef[]): Promise<ReadGroup[]> {
    const limit = pLimit(WHOLE_GROUPS_AT_ONCE);
    return Promise.all(refs.map((ref) => limit(() => decide(input, ref))));
  }

  async function decide(input: ChooseInput, ref: GroupRef): Promise<ReadGroup> {
    const decided = await readDecidedGroup(store, input, placeOfGroup(input, ref), ref, prices);
    return { ...decided, dealt: dealtAt(ref) };
  }

  return { choose: asActivity(dependencies, ChooseInput, choose) };
}
