/** The options of `model.train` and `model.trainSft`, and the settings that a step is trained with. */
import {
  TrainConfig as TrainConfigSchema,
  type SupervisedConfig,
  type TrainConfig,
  type BlobRef,
  type LoraConfig,
} from '../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { roleTrainOptions } from '../../core/rules/roles.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import { amount, anything, optional, takes, whole } from '../options/options.ts';
import type { LoopRun } from './loop-run.ts';
import type { Messages, Tools } from './trajectory.ts';
import { differingLoraOption } from '../../core/numbers/lora-difference.ts';
import { parseTrainedName } from '../../core/names/policy-name.ts';
import { decodeJson } from '../../store/bytes/json.ts';
import { findTrainedPolicy, hasLearned, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import type { Manifest } from '../../store/records/runs/manifest.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';

export type TrainOptions = Partial<Omit<TrainConfig, 'lora' | 'loss' | 'optimizer' | 'klReference'>> &
  Pick<NonNullable<RunOptions['train']>, 'loss' | 'optimizer'> & {
    learningRate?: number;
    /** A trained checkpoint, as `run@step`: what `klCoefficient` charges a divergence from, in place of the base model. */
    klReference?: string;
    /** A group is trained only if at least this many of its attempts have a reward. */
    minimumGroupSize?: number;
    /** Allows a step without any sampled choice: it ends without training. */
    allowEmptyStep?: boolean;
  };

export interface TrainSftOptions extends Pick<
  TrainOptions,
  'learningRate' | 'optimizer' | 'microBatchTokens' | 'packing'
> {
  /** Which assistant messages of a chat are trained. */
  turns?: SupervisedConfig['turns'];
  /** The treatment of a chat above the token limit. */
  overlong?: SupervisedConfig['overlong'];
  /** The token limit of a chat; the default is the model's context window. */
  maxExampleTokens?: number;
  /** Chats that are only scored, after the step. */
  heldOut?: Iterable<Chat>;
}

/** Every field of a step's configuration but the adapter's, which the model has. `readSettings` checks their values. */
const OF_TRAINING = optional(...TrainConfigSchema.omit({ lora: true }).keyof().options);

const LEARNING_RATE = { learningRate: amount('pass 5e-5').optional() };

export const checkTrain = takes<TrainOptions>('model.train', {
  ...OF_TRAINING,
  ...LEARNING_RATE,
  minimumGroupSize: whole(2, 'pass 2 (an advantage is relative to its group)').optional(),
  allowEmptyStep: anything.optional(),
});

export const checkTrainSft = takes<TrainSftOptions>('model.trainSft', {
  ...LEARNING_RATE,
  ...optional('turns', 'overlong', 'maxExampleTokens', 'heldOut', 'optimizer', 'microBatchTokens', 'packing'),
});

/** A conversation whose assistant messages are trained. */
export interface Chat {
  messages: Messages;
  tools?: Tools | null;
  /** Shown in errors. */
  id?: string;
}

export interface TrainSettings {
  learningRate: number;
  minimumGroupSize: number;
  allowEmptyStep: boolean;
  train: TrainConfig;
}

/** How many groups there are to train, and the loss that stands in the store. */
interface Given {
  /** The called function, for errors. */
  readonly name?: 'model.train' | 'model.trainSft';
  readonly groups: number;
}

/** Fills in defaults and checks every value. */
export async function readSettings(
  run: LoopRun,
  options: TrainOptions,
  { name = 'model.train', groups }: Given,
): Promise<TrainSettings> {
  const { config } = run;
  const {
    learningRate = config.learningRate,
    minimumGroupSize = 2,
    allowEmptyStep = false,
    klReference: named,
    ...train
  } = options;
  const filled = fill(config, { ...train, ...(await findReference(run, named)) }, groups);
  const { error } = TrainConfigSchema.safeParse(filled);
  const issue = error?.issues[0];
  if (issue !== undefined)
    throw badConfig(
      `${name} has an invalid option${['', ...issue.path].join(' ')} (${issue.message}); see docs/imperative-api.md for the available options`,
    );
  return { learningRate, minimumGroupSize, allowEmptyStep, train: filled };
}

function fill(config: LoopRun['config'], train: NonNullable<RunOptions['train']>, groups: number): TrainConfig {
  const { run, agent, baseModel, roles, competing } = config;
  const { lora, loss } = config.train;
  const filled = { loss, ...roleTrainOptions({ competing }), ...train, lora };
  const options = { run, agent, baseModel, ...(roles && { roles }), ...(competing && { competing }), train: filled };
  return defaultRunConfig(groups === 0 ? options : { ...options, groupsPerStep: groups }).train;
}

/** Its adapter, which the plan of the step names by its hash; nothing where none is named. */
async function findReference(run: LoopRun, named: string | undefined): Promise<{ klReference?: BlobRef }> {
  if (named === undefined) return {};
  const policy = typeof named === 'string' ? parseTrainedName(named) : null;
  if (typeof policy?.step !== 'number')
    throw refused(`name one checkpoint as RUN@STEP, got ${JSON.stringify(named)}`, 'number');
  const reference = await findTrainedPolicy(run.store, policy);
  if (!hasLearned(reference))
    throw refused(`be trained, but nothing of ${reference.name} is, so it is the base model`, 'none');
  const start = await readManifest(run.store, { run: run.name, branch: 0, step: 0 });
  if (start !== null) {
    checkBase(run, reference, start);
    await checkShape(run, reference, start);
  }
  return { klReference: reference.adapter };
}

/** Identified by the hash of its weights: two folders may have one name. */
function checkBase({ name: own }: LoopRun, { name, manifest }: TrainedPolicy, start: Manifest): void {
  if (start.baseModelSha256 === manifest.baseModelSha256) return;
  const [its, ours] = [manifest, start].map(({ baseModel, baseModelSha256 }) => `${baseModel} (${baseModelSha256})`);
  throw refused(`have the base model of ${own}, ${ours}, but ${name} has ${its}`);
}

/** Its weights are laid into the place of the model's own. */
async function checkShape(run: LoopRun, { name, config, manifest }: TrainedPolicy, start: Manifest): Promise<void> {
  const { name: own, store } = run;
  const [its, ours] = [config.train.lora, run.config.train.lora];
  if (its === null || ours === null) {
    if (its === ours) return;
    const [theirs, mine] = [its, ours].map((lora) => (lora === null ? 'all weights' : 'a LoRA adapter'));
    throw refused(`train the same: ${name} has ${theirs}, ${own} trains ${mine}`);
  }
  const sameModules = its.targetModules === null && ours.targetModules === null;
  const shapes = sameModules
    ? ([its, ours] as const)
    : ([await withModules(store, its, manifest), await withModules(store, ours, start)] as const);
  const found = differingLoraOption(...shapes, ['dropout']);
  if (found !== null)
    throw refused(`have the LoRA options of ${own}: ${name} has ${found.option} ${found.one}, ${own} ${found.other}`);
}

/** Null stands for all linear layers: an adapter's own file lists what they are, as somebody else's adapter does. */
async function withModules(store: Store, lora: LoraConfig, { adapterConfig }: Manifest): Promise<LoraConfig> {
  if (lora.targetModules !== null) return { ...lora, targetModules: lora.targetModules.toSorted() };
  const { target_modules: modules } = decodeJson(await store.getBlob(adapterConfig), adapterConfig.key) as {
    target_modules: string[];
  };
  return { ...lora, targetModules: modules.toSorted() };
}

const REMEDIES = {
  number: 'a restarted script must find the same one: pass taught.one@40, or model.getInferenceName(40)',
  none: 'leave klReference out, or name a trained checkpoint',
  other: 'name another checkpoint',
};

function refused(rule: string, remedy: keyof typeof REMEDIES = 'other'): TemperError {
  return badConfig(`klReference of model.train must ${rule}; ${REMEDIES[remedy]}`);
}
