/** Checkpoints as every command takes them: one grammar (core/policy-name.ts) and the same words in help. */
import { parseCheckpointName, type CheckpointName } from '../../core/policy-name.ts';
import type { Argument } from './command.ts';
import { UsageError } from './errors.ts';

export const CHECKPOINT_ARGUMENT = { placeholder: 'CHECKPOINT' } satisfies Argument;

export const CHECKPOINT_HELP = [
  'CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios), or',
  'RUN~BRANCH@STEP (on another branch, after a rollback).',
] as const;

export function readCheckpointName(text: string): CheckpointName {
  const name = parseCheckpointName(text);
  if (name !== null) return name;
  throw new UsageError(
    `the checkpoint must be RUN, RUN@STEP, RUN@latest, RUN@best or RUN~BRANCH@STEP, got ${JSON.stringify(text)}; see temper runs`,
  );
}
