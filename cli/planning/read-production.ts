/** Runs and schedules that train recorded conversations: where they start, and what their flags mean. */
import type { Checkpoint, ProductionConfig, ProductionSource } from '../../core/contract.ts';
import { describeLeftOut } from '../../core/production.ts';
import { layoutOf, type RunOptions } from '../../core/run-defaults.ts';
import type { FlagValues } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import { plural } from '../../core/format.ts';
import type { Parent } from './find-parent.ts';
import { CONVERSATIONS_PER_STEP, MAX_POLICY_AGE, PLAY_FLAGS, type PRODUCTION_FLAGS } from './production-flags.ts';

type ProductionFlags = FlagValues<typeof PRODUCTION_FLAGS>;

/** Null: the agent is played. */
export function readProductionSource(flags: ProductionFlags): ProductionSource | null {
  const { 'from-production': run, 'at-least': atLeast, 'max-policy-age': maxPolicyAge, epochs } = flags;
  if (run === null) return null;
  return { run, atLeast: atLeast ?? 1, maxPolicyAge: maxPolicyAge ?? MAX_POLICY_AGE, epochs: epochs ?? 1 };
}

export function refusePlayFlags(flags: Readonly<Record<string, unknown>>): void {
  for (const [name, because] of Object.entries(PLAY_FLAGS))
    if ((flags[name] ?? null) !== null)
      throw new UsageError(`--${name} has no effect with --from-production: ${because}`);
}

/** Options of a run that starts from `parent`: its weights, sampling and optimizer, as for a run on chats. */
export function productionOptions({
  checkpoint,
  config,
}: Parent): Pick<RunOptions, 'parent' | 'rollout' | 'train' | 'groupsPerStep' | 'judge'> {
  const { lora, optimizer } = config.train;
  return {
    parent: checkpoint,
    rollout: config.rollout,
    train: { lora, optimizer, ...layoutOf(config), baseline: 'rae' },
    groupsPerStep: CONVERSATIONS_PER_STEP,
    judge: null,
  };
}

/** Stands for conversations that are not chosen yet, so that the rules of such a run are checked. */
export function expectProduction(
  { run, atLeast }: Pick<ProductionSource, 'run' | 'atLeast'>,
  { branch, step, manifestSha256, adapterSha256 }: Checkpoint,
): ProductionConfig {
  const sha256 = '0'.repeat(64);
  return {
    run,
    recordings: { key: `blobs/${sha256}`, sha256, bytes: 0 },
    conversations: atLeast,
    samplers: [{ branch, step, manifestSha256, adapterSha256, age: 0 }],
    leftOut: {},
  };
}

/** `412 conversations of demo with feedback, left out: 3 redacted`. */
export function tellConversations({
  run,
  conversations,
  leftOut,
}: Omit<ProductionConfig, 'recordings' | 'samplers'>): string {
  const reasons = describeLeftOut(leftOut);
  return `${plural(conversations, 'conversation')} of ${run} with feedback${reasons === null ? '' : `, left out: ${reasons}`}`;
}
