/** Flags of a run, or a schedule, that trains recorded conversations. */
import type { Flags } from '../command-line/command.ts';

/** A nightly step or two of a schedule; the loss corrects by the recorded log-probabilities. */
export const MAX_POLICY_AGE = 32;

/** Conversations of a step: single attempts are noisier than groups. */
export const CONVERSATIONS_PER_STEP = 32;

const heading = 'Recorded conversations';

export const PRODUCTION_FLAGS = {
  'from-production': {
    heading,
    kind: 'text',
    placeholder: 'RUN',
    description:
      'train conversations that temper serve RUN --record kept and that have feedback, instead of playing the agent',
  },
  'at-least': {
    heading,
    kind: 'integer',
    placeholder: 'N',
    minimum: 1,
    description: 'fewest such conversations; with fewer, nothing is trained',
    default: '1',
    needs: ['from-production'],
  },
  epochs: {
    heading,
    kind: 'integer',
    placeholder: 'N',
    minimum: 1,
    description: 'how often each conversation is trained',
    default: '1',
    needs: ['from-production'],
  },
  'max-policy-age': {
    heading,
    kind: 'integer',
    placeholder: 'N',
    minimum: 0,
    description: 'most optimizer steps between the policy that answered and the one that trains',
    default: String(MAX_POLICY_AGE),
    needs: ['from-production'],
  },
} satisfies Flags;

/** Flags about attempts that are played, with the reason for which they have no effect on recorded conversations. */
export const PLAY_FLAGS: Readonly<Record<string, string>> = {
  steps: 'the number of conversations and --epochs decide it; leave it out',
  'group-size': 'each conversation is a group of one attempt; leave it out',
  'minimum-group-size': 'each conversation is a group of one attempt; leave it out',
  'replacement-rounds': 'no group is played; leave it out',
  'max-staleness': 'no attempt is played; to leave out old policies, pass --max-policy-age',
  'warm-start':
    'a run trains chats or conversations; to train chats first, run temper sft FILE, and pass its run as --from',
  adapter: 'the run starts from the checkpoint that serves; to start from another one, pass --from CHECKPOINT',
  judge: 'the feedback is the reward; leave it out',
};

/** Flags that the project's configuration may set: settings of other runs have no effect on this one. */
export function takenBy(flags: Flags, words: readonly string[] = []): Flags {
  if (!words.some((word) => /^--from-production(=|$)/.test(word))) return flags;
  const taken = Object.entries(flags).filter(([name]) => name !== 'base-model' && !Object.hasOwn(PLAY_FLAGS, name));
  return Object.fromEntries(taken);
}
