/**
 * `judge`: the verdict on a step. The first groups of its window that are complete are trained, and those that never will
 * be trained leave it. The verdict in the store records the choice, so that it is made once, whoever asks, and when.
 */
import pLimit from 'p-limit';

import { type GroupRef, JudgeInput, type JudgeResult } from '../core/contract/contract.ts';
import { addUsages } from '../core/rules/costs.ts';
import { canonicalJson, hashOf } from '../core/text/hashes.ts';
import { chooseFirst } from '../core/plan/window.ts';
import { placeOfGroup } from '../store/layout.ts';
import { WHOLE_GROUPS_AT_ONCE } from '../store/records/children.ts';
import {
  dealtAt,
  publishStepVerdict,
  readDecidedGroup,
  readStepVerdict,
  toStepVerdict,
  type ReadGroup,
} from '../store/records/groups/step-verdict.ts';
import { asActivity, checkInputs } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

type Rules = Omit<JudgeInput, 'most' | 'window' | 'resultsSha256'>;

export function createJudgeActivities(dependencies: Dependencies) {
  const { store, prices } = dependencies;

  async function judge(input: JudgeInput): Promise<JudgeResult> {
    const recorded = await readStepVerdict(store, input);
    const chosen = recorded === null ? await choose(input) : null;
    const own = chosen && toStepVerdict(input.inputsSha256, chosen);
    const verdict = recorded ?? (await publishStepVerdict(store, input, own!));
    const what = `the verdict on step ${input.step} of the run ${input.run}`;
    checkInputs(what, verdict.inputsSha256, input.inputsSha256);
    const isOwn = chosen !== null && canonicalJson(verdict) === canonicalJson(own);
    const decided = isOwn ? chosen : await decideAll(input, verdict.groups);
    const groups = decided.map(({ result }, index) => ({ ...result, use: verdict.groups[index]!.use }));
    const usage = addUsages(decided.map((group) => group.usage));
    return { groups: hashOf(groups) === input.resultsSha256 ? null : groups, usage };
  }

  /** Groups that leave the window as their files are now. */
  async function choose({ most, window, ...input }: Omit<JudgeInput, 'resultsSha256'>): Promise<ReadGroup[]> {
    const judged = window.flatMap(({ judgedSha256, ...place }) =>
      judgedSha256 === null ? [] : { ...place, judgedSha256 },
    );
    const decided = (await decideAll(input, judged)).map((group, index) =>
      judged[index]!.isStale ? { ...group, result: { ...group.result, use: 'stale' as const } } : group,
    );
    const leaving = new Set(
      chooseFirst(
        most,
        decided.map(({ result }) => result),
      ),
    );
    return decided.filter(({ result }) => leaving.has(result));
  }

  function decideAll(input: Rules, refs: readonly GroupRef[]): Promise<ReadGroup[]> {
    const limit = pLimit(WHOLE_GROUPS_AT_ONCE);
    return Promise.all(refs.map((ref) => limit(() => decide(input, ref))));
  }

  async function decide(input: Rules, ref: GroupRef): Promise<ReadGroup> {
    const decided = await readDecidedGroup(store, input, placeOfGroup(input, ref), ref, prices);
    return { ...decided, dealt: dealtAt(ref) };
  }

  return { judge: asActivity(dependencies, JudgeInput, judge) };
}
