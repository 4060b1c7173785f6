/** The verdict on a step: what each group came to, which of them are trained, and from which rewards. */
import type { StepVerdict } from '../../../core/contract/records.ts';
import type { GroupRef, GroupResult, Usage } from '../../../core/contract/contract.ts';
import { toGroupRef } from '../../../core/plan/step.ts';
import type { PriceTable } from '../../../core/numbers/prices.ts';
import { trainedRewards } from '../../../core/plan/shaped-rewards.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import { judgedKey, rolloutsKey, stepVerdictKey, type GroupPlace, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { parseStored, StepVerdictFileSchema } from '../file-schemas.ts';
import { readRollouts, readVerdict, requireFile } from './group-files.ts';
import { summariseGroup, type Summarised } from './group-result.ts';
import type { Judged, Rollouts } from './trajectories.ts';
import { usageOfAttempts } from './usage.ts';

/** A group from its files: its result, and by attempt the reward for its advantage; null: discarded. */
export interface DecidedGroup {
  result: GroupResult;
  rewards: (number | null)[];
  /** Place of a group that another step dealt. */
  dealt?: Pick<GroupRef, 'step' | 'branch'>;
}

export function dealtAt({ step, branch }: { step?: number | undefined; branch?: number | undefined }) {
  return { ...(step !== undefined && { step }), ...(branch !== undefined && { branch }) };
}

export interface ReadGroup extends DecidedGroup {
  usage: Usage;
}

export type { StepVerdict };
type GroupVerdict = StepVerdict['groups'][number];

/** Pure: the same files give the same verdict. */
export function decideGroup(plan: Summarised, rollouts: Rollouts, judged: Judged, judgedSha256: string): DecidedGroup {
  return {
    result: summariseGroup(plan, rollouts, judged, judgedSha256),
    rewards: trainedRewards(plan, rollouts.attempts, judged),
  };
}

/** From a group's files. The bytes must be those that its reference names, as far as it names any. */
export async function readDecidedGroup(
  store: Store,
  rules: Omit<Summarised, 'step' | 'group' | 'scenario'>,
  place: GroupPlace,
  { rolloutsSha256, judgedSha256 }: Partial<GroupRef>,
  prices: PriceTable = {},
): Promise<ReadGroup> {
  const key = rolloutsKey(place);
  const { rollouts } = requireFile(await readRollouts(store, key, rolloutsSha256), key);
  const { judged, sha256 } = requireFile(await readVerdict(store, place, judgedSha256), judgedKey(place));
  const plan = { ...rules, ...place, scenario: rollouts.header.scenario ?? 0 };
  return { ...decideGroup(plan, rollouts, judged, sha256), usage: usageOfAttempts(rollouts.attempts, prices) };
}

export function toStepVerdict(inputsSha256: string, groups: readonly DecidedGroup[]): StepVerdict {
  return {
    schema: 1,
    inputsSha256,
    groups: groups.map(({ result, rewards, dealt }) => toGroupVerdict(result, rewards, dealt)),
  };
}

type Decision = Pick<GroupResult, 'group' | 'rolloutsSha256' | 'judgedSha256' | 'use'>;

/** Without what a later version may have added. */
export function toGroupVerdict(
  decision: Decision,
  rewards: DecidedGroup['rewards'],
  dealt: DecidedGroup['dealt'] = {},
): GroupVerdict {
  return { ...toGroupRef(decision), ...dealt, use: decision.use, rewards };
}

/** A second writer gets the first one's verdict. */
export async function publishStepVerdict(store: Store, place: StepPlace, verdict: StepVerdict): Promise<StepVerdict> {
  const { bytes } = await store.publish(stepVerdictKey(place), encodeJson(verdict));
  return parseStepVerdict(bytes, stepVerdictKey(place));
}

/** Null if the step was not judged yet. */
export async function readStepVerdict(store: Store, place: StepPlace): Promise<StepVerdict | null> {
  const bytes = await store.read(stepVerdictKey(place));
  return bytes && parseStepVerdict(bytes, stepVerdictKey(place));
}

function parseStepVerdict(bytes: Uint8Array, key: string): StepVerdict {
  return parseStored(StepVerdictFileSchema, decodeJson(bytes, key), key);
}
