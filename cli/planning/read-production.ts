/** Runs that train recorded conversations: where they start, and which conversations they train. */
import { badConfig, WorkFailed } from '../../core/contract/failures.ts';
import type { Checkpoint, ProductionConfig, ProductionSource, RunConfig } from '../../core/contract/contract.ts';
import { plural } from '../../core/reports/format.ts';
import { describeLeftOut, describeTooFew } from '../../core/rules/production.ts';
import { layoutOf, type RunOptions } from '../../core/rules/run-defaults.ts';
import { readAncestors } from '../../store/records/production/ancestors.ts';
import { findConfiguredCheckpoint } from '../../store/records/runs/find-policy.ts';
import type { ChoiceRules, ChosenConversations } from '../../store/records/production/choice.ts';
import { chooseRecorded, takeRecorded } from '../../store/records/production/dataset.ts';
import { findServing } from '../../store/records/production/serving-checkpoint.ts';
import type { Store } from '../../store/store.ts';
import type { Parent } from './find-parent.ts';

/** Conversations of a step: single attempts are noisier than groups. */
export const CONVERSATIONS_PER_STEP = 32;

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

/** The checkpoint that serves the run, or for an existing run the one that it started from. */
export async function findServingParent(
  store: Store,
  { run: served }: ProductionSource,
  recorded: RunConfig | null,
): Promise<Parent> {
  const checkpoint = recorded?.parent ?? (await findServing(store, served));
  return { ...(await findConfiguredCheckpoint(store, checkpoint)), checkpoint };
}

interface Choosing {
  readonly run: string;
  readonly parent: Parent;
  readonly recorded: RunConfig | null;
  readonly store: Store;
}

async function rulesOf({ maxPolicyAge }: ProductionSource, { run, parent, store }: Choosing): Promise<ChoiceRules> {
  return { run, ancestors: await readAncestors(store, parent.checkpoint, maxPolicyAge) };
}

/** Those of an existing run; for a new one, what stands for as many as there are. Nothing is taken yet. */
export async function expectChosen(source: ProductionSource, choosing: Choosing): Promise<ProductionConfig> {
  const { parent, recorded, store } = choosing;
  if (recorded?.production !== undefined) return recorded.production;
  if (recorded !== null)
    throw badConfig(
      `the run ${recorded.run} exists and trains no recorded conversations; pass another --run for those of ${source.run}`,
    );
  const choice = await chooseRecorded(store, source.run, await rulesOf(source, choosing));
  const { length } = choice.conversations;
  if (length < source.atLeast) throw tooFew(source, choice);
  return expectProduction({ ...source, atLeast: length }, parent.checkpoint);
}

/** From here on the conversations are this run's. */
export async function takeChosen(source: ProductionSource, choosing: Choosing): Promise<ProductionConfig> {
  const taken = await takeRecorded(choosing.store, source.run, await rulesOf(source, choosing));
  if (taken === null) throw tooFew(source, { conversations: [], trainedBefore: 0, leftOut: {} });
  return taken;
}

function tooFew(source: ProductionSource, { conversations, leftOut }: ChosenConversations): WorkFailed {
  return new WorkFailed(
    `${describeTooFew(source, { found: conversations.length, leftOut })}; wait for more feedback, or lower --at-least`,
  );
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
export function describeConversations({
  run,
  conversations,
  leftOut,
}: Omit<ProductionConfig, 'recordings' | 'samplers'>): string {
  const reasons = describeLeftOut(leftOut);
  return `${plural(conversations, 'conversation')} of ${run} with feedback${reasons === null ? '' : `, left out: ${reasons}`}`;
}
