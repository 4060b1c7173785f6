/** Plan of a supervised run from a file of chats and flags. */
import type { RunConfig, SupervisedConfig } from '../../core/contract.ts';
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import type { CheckpointName } from '../../core/policy-name.ts';
import { layoutOf, type RunOptions } from '../../core/run-defaults.ts';
import { SUPERVISED_AGENT } from '../../core/supervised.ts';
import { startFrom } from '../../store/records/peft-adapter.ts';
import { readRun } from '../../store/records/run-reader.ts';
import type { BaseModel } from '../../workers/base-models/base-model.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readBaseModel } from '../planning/base-model.ts';
import { readChatTemplate, type ChatTemplate } from '../planning/chat-template.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { UsageError } from '../command-line/errors.ts';
import { findParent, readParentModel, type Parent } from '../planning/find-parent.ts';
import { planSupervisedSteps, readExamplesFile, stepsOfEpochs, supervisedFields } from '../planning/read-examples.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { planRun, type RunPlan } from '../planning/plan-run.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import { readStartAdapter } from '../planning/start-adapter.ts';
import type { SftContext } from './command.ts';

export async function planSft(context: SftContext): Promise<RunPlan> {
  const { flags, args, project, cwd, env } = context;
  const name = flags.run === null ? null : checkRunName(flags.run);
  const examples = await readExamplesFile(args.file, cwd);
  const run = name ?? runNameOf(examples.name);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const from = readFrom(flags);
  const adapter = await readStartAdapter(flags.adapter, cwd);
  const store = await openProjectStore(project, env);
  const known = await readRun(store, run);
  const recorded = known?.file.config ?? null;
  const parent = from === null ? null : await findParent(store, from, recorded);
  const model = await readModel(context, parent, template);
  const values = fieldsOf(flags, template);
  const supervised = planSupervisedSteps(examples, supervisedFields(values));
  const names = { run, agent: SUPERVISED_AGENT, baseModel: model.name };
  const fresh = { ...names, steps: stepsOf(flags, supervised), ...beginWith(parent, recorded), supervised };
  const asked = applyRunFlags(startFrom(adapter, fresh), values);
  const hasOwnMicroBatch = parent !== null || values.has('train.microBatchTokens');
  const given = { agentFile: null, reference: null, template, adapter, examples: examples.bytes, hasOwnMicroBatch };
  return planRun({ asked, model, parent, known, store, flags, ...given }, context);
}

function readFrom({ adapter, from }: Pick<SftContext['flags'], 'adapter' | 'from'>): CheckpointName | null {
  if (from === null) return null;
  if (adapter === null) return readCheckpointName(from);
  throw new UsageError(
    `--adapter ${adapter} and --from ${from} both say what the run begins with; leave one of them out`,
  );
}

async function readModel(
  context: SftContext,
  parent: Parent | null,
  template: ChatTemplate | null,
): Promise<BaseModel> {
  const named = context.flags['base-model'];
  if (parent !== null) return readParentModel(parent, named, template, context);
  if (named !== null) return readBaseModel(named, context, template !== null);
  throw new UsageError(
    '--base-model is missing; pass --base-model pocket to try it on this machine, a folder, an OWNER/NAME of the Hugging Face hub, or s3://BUCKET/PREFIX, or --from CHECKPOINT',
  );
}

/** Options inherited from a parent: weights, sampling and optimizer. Those of attempts do not apply to examples. */
function beginWith(
  parent: Parent | null,
  recorded: RunConfig | null,
): Pick<RunOptions, 'parent' | 'rollout' | 'train'> {
  if (parent === null) return { train: layoutOf(recorded) };
  const { rollout, train } = parent.config;
  const { lora, optimizer } = train;
  return { parent: parent.checkpoint, rollout, train: { lora, optimizer, ...layoutOf(parent.config) } };
}

function stepsOf(
  { steps, epochs }: Pick<SftContext['flags'], 'steps' | 'epochs'>,
  supervised: SupervisedConfig,
): number {
  if (steps !== null && epochs !== null)
    throw new UsageError(`--steps ${steps} and --epochs ${epochs} both say how long to train; leave one of them out`);
  if (epochs !== null && !(epochs > 0))
    throw new UsageError(`--epochs must be greater than 0, got ${epochs}; pass --epochs 1`);
  return steps ?? stepsOfEpochs(supervised, epochs ?? 1);
}

function runNameOf(file: string): string {
  const name = file.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  if (NAME_PATTERN.test(name)) return name;
  throw new UsageError(`the run must have a name, and none can be made from ${file}; pass --run my-run`);
}
