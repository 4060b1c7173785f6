/** The verdict on a step: what each group came to, which of them are trained, and from which rewards. */
import type { GroupRef, GroupResult, JudgeInput } from '../../core/contract.ts';
import { toGroupRef } from '../../core/plan-step.ts';
import { decodeJson, encodeJson } from '../bytes/json.ts';
import { stepVerdictKey, type StepPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import { parseStored, StepVerdictFileSchema } from './file-schemas.ts';
import { summariseGroup, trainedRewards } from './group-result.ts';
import type { Judged, Rollouts } from './trajectories.ts';

export interface JudgedGroup {
  ref: GroupRef;
  rollouts: Rollouts;
  judged: Judged;
}

/** `verdict.json`. */
export interface StepVerdict {
  schema: 1;
  inputsSha256: string;
  groups: DecidedGroup[];
}

interface DecidedGroup extends GroupRef {
  /** `trained`, or why it is not. */
  use: GroupResult['use'];
  /** By attempt: what its advantage is computed from; null where it is no data. */
  rewards: (number | null)[];
}

/** Pure: the same files give the same verdict. */
export function decideVerdict(
  input: Pick<JudgeInput, 'step' | 'minimumGroupSize' | 'truncated' | 'inputsSha256'>,
  groups: readonly JudgedGroup[],
): { results: GroupResult[]; verdict: StepVerdict } {
  const results = groups.map(({ ref, rollouts, judged }) =>
    summariseGroup({ ...input, group: ref.group, scenario: scenarioOf(rollouts) }, rollouts, judged, ref.judgedSha256),
  );
  const decided = groups.map(({ rollouts, judged }, index) =>
    toDecided(results[index]!, trainedRewards(input.truncated, rollouts, judged)),
  );
  return { results, verdict: { schema: 1, inputsSha256: input.inputsSha256, groups: decided } };
}

type Decision = Pick<GroupResult, 'group' | 'rolloutsSha256' | 'judgedSha256' | 'use'>;

export function toDecided(result: Decision, rewards: (number | null)[]): DecidedGroup {
  return { ...toGroupRef(result), use: result.use, rewards };
}

/** The one that stands: whoever comes second takes the winner's. */
export async function publishStepVerdict(store: Store, place: StepPlace, verdict: StepVerdict): Promise<StepVerdict> {
  const { bytes } = await store.publish(stepVerdictKey(place), encodeJson(verdict));
  return parseStepVerdict(bytes, stepVerdictKey(place));
}

/** Null where the step was not judged yet. */
export async function readStepVerdict(store: Store, place: StepPlace): Promise<StepVerdict | null> {
  const bytes = await store.read(stepVerdictKey(place));
  return bytes && parseStepVerdict(bytes, stepVerdictKey(place));
}

/** A step of which nothing is trained is over with its verdict: no manifest will come. */
export function trainsNothing({ groups }: StepVerdict): boolean {
  return groups.every(({ use }) => use !== 'trained');
}

function parseStepVerdict(bytes: Uint8Array, key: string): StepVerdict {
  return parseStored(StepVerdictFileSchema, decodeJson(bytes, key), key);
}

function scenarioOf({ header }: Rollouts): number {
  return header.scenario ?? 0;
}
