/** From a file of chats and flags to a run that may be started: everything is checked before anything is started. */
import { NAME_PATTERN, type SupervisedConfig } from '../../core/contract.ts';
import { recordedLayout } from '../../core/run-defaults.ts';
import { SUPERVISED_AGENT } from '../../core/supervised.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { modulePath } from '../../workers/module-path.ts';
import { openProjectStore } from '../../workers/project-store.ts';
import { readBaseModel, settleBaseModel } from '../command-line/base-model.ts';
import { readChatTemplate } from '../command-line/chat-template.ts';
import { UsageError } from '../command-line/errors.ts';
import { checkEngine } from '../train/check-engine.ts';
import { planSupervisedSteps, readExamplesFile, stepsOfEpochs, supervisedFields } from '../train/read-examples.ts';
import { checkRunName, findExisting, type PlannedRun } from '../train/read-planned-run.ts';
import { applyRunFlags, fieldsOf } from '../train/run-flags.ts';
import type { SftContext } from './command.ts';

export async function readPlannedSft(context: SftContext): Promise<PlannedRun> {
  const { flags, args, project, cwd, env } = context;
  const name = flags.run === null ? null : checkRunName(flags.run);
  const examples = await readExamplesFile(args.file, cwd);
  const run = name ?? runNameOf(examples.name);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const model = await readBaseModel(flags['base-model'], context, template);
  const store = await openProjectStore(project, env);
  const recorded = (await readRun(store, run))?.file.config ?? null;
  const values = fieldsOf(flags, template);
  const supervised = planSupervisedSteps(examples, supervisedFields(values));
  const steps = stepsOf(flags, supervised);
  const names = { run, agent: SUPERVISED_AGENT, baseModel: model.name };
  const asked = applyRunFlags({ ...names, steps, train: recordedLayout(recorded), supervised }, values);
  await checkEngine(asked, flags, context);
  // The last check of all: it may download a model.
  const { name: baseModel, models } = await settleBaseModel(model, recorded?.baseModel ?? null, context);
  const config = { ...asked, baseModel };
  const given = {
    agentFile: modulePath('./supervised-agent'),
    models,
    template,
    examples: examples.bytes,
    adapterFiles: [],
    hasOwnMicroBatch: values.has('train.microBatchTokens'),
    store,
  };
  return { config, ...given, ...(await findExisting(store, config)) };
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
