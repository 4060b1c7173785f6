/** Rules of runs that train recorded conversations, and the policies that sampled those. Pure; for workflows and planners. */
import type { Checkpoint, ProductionConfig, ProductionSource, RunConfig, TrainInput } from './contract.ts';

/** A group is one conversation. */
export const GROUP_OF_ONE = 1;

/** Every policy that sampled conversations of the run, besides the parent of the step; ages count from the run's start. */
export function planRecordedSamplers({ samplers }: ProductionConfig, parent: Checkpoint): Pick<TrainInput, 'samplers'> {
  const older = samplers.flatMap(({ age, ...sampler }) => {
    const staleness = age + parent.step;
    return staleness === 0 ? [] : [{ ...sampler, staleness, foreign: true as const }];
  });
  return older.length === 0 ? {} : { samplers: older };
}

/** Describes a contradiction; null if there is none. */
export function findProductionProblem(config: RunConfig): string | null {
  const { production, maxStaleness, parent, supervised, roles, judge, train } = config;
  if (production === undefined) return null;
  if (train.baseline !== 'rae')
    return `baseline must be rae with recorded conversations (each is a single attempt, so no group has a mean), got ${train.baseline}; leave baseline out`;
  if (maxStaleness > 0)
    return `maxStaleness ${maxStaleness} has no effect with recorded conversations (no attempt is played); leave maxStaleness out`;
  if (supervised !== undefined)
    return 'a run must train examples or recorded conversations, got both; leave the warm start out, or train it first with temper sft';
  if (roles !== undefined)
    return 'recorded conversations must train an agent without roles (no role is recorded with them); leave roles out';
  if (judge !== null)
    return `the judge ${judge} has no effect with recorded conversations, whose reward is their feedback; leave judge out`;
  if (parent !== null) return null;
  return 'a run must start from a checkpoint if it trains recorded conversations, got none; pass the checkpoint that served';
}

const REASONS: Readonly<Record<string, string>> = {
  redacted: 'redacted',
  parameters: 'sampled otherwise than in training',
  'several-policies': 'answered by several policies',
  'other-policy': 'answered by a policy that is too old or unrelated',
};

interface Found {
  readonly leftOut: Readonly<Record<string, number>>;
  /** Conversations that may be trained. */
  readonly found: number;
}

/** `3 redacted, 1 answered by several policies`; null if none is left out. */
export function describeLeftOut(leftOut: Readonly<Record<string, number>>): string | null {
  const parts = Object.entries(leftOut).map(([reason, count]) => `${count} ${REASONS[reason] ?? reason}`);
  return parts.length === 0 ? null : parts.join(', ');
}

/** `demo has 12 new conversations with feedback that can be trained (left out: 3 redacted), 200 are asked for`. */
export function describeTooFew(source: Pick<ProductionSource, 'run' | 'atLeast'>, { found, leftOut }: Found): string {
  const reasons = describeLeftOut(leftOut);
  const left = reasons === null ? '' : ` (left out: ${reasons})`;
  return `${source.run} has ${found} new conversations with feedback that can be trained${left}, at least ${source.atLeast} are asked for`;
}
