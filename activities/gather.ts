/** `gather`: the recorded conversations of a step, each published as a group of one attempt with its feedback as reward. */
import pLimit from 'p-limit';

import { GatherInput, type GatherResult, type GroupResult } from '../core/contract/contract.ts';
import { planGathered, type GatheredGroup } from '../core/plan/production.ts';
import { parseRollouts, publishVerdict, requireFile } from '../store/records/groups/group-files.ts';
import { judgeByAgent, summariseGroup } from '../store/records/groups/group-result.ts';
import { readConversations, samplerOf } from '../store/records/production/dataset.ts';
import { encodeRollouts, type AttemptRecord } from '../store/records/groups/trajectories.ts';
import { rolloutsKey } from '../store/layout.ts';
import { asActivity, checkInputs, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

/** Groups written at once. */
const AT_ONCE = 8;

export function createGatherActivities(dependencies: Dependencies) {
  const { store } = dependencies;

  async function gather(input: GatherInput, scope: Scope): Promise<GatherResult> {
    const recorded = await readConversations(store, input.recordings);
    const limit = pLimit(AT_ONCE);
    const groups = planGathered(input).map((plan) =>
      limit(async () => {
        scope.signal.throwIfAborted();
        return publishGroup(input, plan, requireFile(recorded[plan.scenario] ?? null, input.recordings.key));
      }),
    );
    return { groups: await Promise.all(groups) };
  }

  /** A group that is there already was written from the same data set. */
  async function publishGroup(
    { run, branch, step }: GatherInput,
    plan: GatheredGroup,
    { scenarioId = '', scenario: _scenario, ...attempt }: AttemptRecord,
  ): Promise<GroupResult> {
    const { group, scenario, inputsSha256 } = plan;
    const place = { run, branch, step, group };
    const header = {
      inputsSha256,
      branch,
      step,
      group,
      scenarioId,
      scenario,
      adapterSha256: samplerOf(attempt),
      attempts: 1,
    };
    const bytes = await encodeRollouts({ header: { schema: 1, ...header }, attempts: [{ ...attempt, attempt: 0 }] });
    const published = await store.publish(rolloutsKey(place), bytes);
    const { rollouts, sha256 } = await parseRollouts(published.bytes, rolloutsKey(place));
    const what = `group ${group} of step ${step} of the run ${run}`;
    checkInputs(what, rollouts.header.inputsSha256, inputsSha256);
    const { judged, sha256: judgedSha256 } = await publishVerdict(store, place, judgeByAgent(rollouts, sha256, plan));
    checkInputs(`the verdict on ${what}`, judged.inputsSha256, inputsSha256);
    return summariseGroup(plan, rollouts, judged, judgedSha256);
  }

  return { gather: asActivity(dependencies, GatherInput, gather) };
}
