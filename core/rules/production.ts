/** Runs that train recorded conversations: the policies that sampled those, and what is said of the rest. Pure; for workflows and planners. */
import type { Checkpoint, ProductionConfig, ProductionSource, TrainInput } from '../contract/contract.ts';

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
