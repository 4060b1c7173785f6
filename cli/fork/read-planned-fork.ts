/** From flags to a fork that may be started: its parent's configuration with what was changed, and the checkpoint it begins with. */
import type { LossConfig, RunConfig, TrainConfig } from '../../core/contract.ts';
import { canonicalJson } from '../../core/hashes.ts';
import { complaintAboutLoss } from '../../core/loss-options.ts';
import { recordedDefaults, type RunOptions } from '../../core/run-defaults.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { settleBaseModel } from '../command-line/base-model.ts';
import { readChatTemplate } from '../command-line/chat-template.ts';
import { readCheckpointName } from '../command-line/checkpoint-names.ts';
import { openProjectStore } from '../../workers/project-store.ts';
import type { ForkContext } from './command.ts';
import { checkFits } from './check-fits.ts';
import { findParent, readParentModel } from './find-parent.ts';
import { checkScenarios, loadAgent } from '../train/load-agent.ts';
import { checkEngine, refuseIdleCorrection } from '../train/check-engine.ts';
import { checkJudge, judgeOptions } from '../train/check-judge.ts';
import { decideRunEngine } from '../train/decide-run-engine.ts';
import { checkReference, readKlReference } from '../train/kl-reference.ts';
import { checkRunName, findExisting, type PlannedRun } from '../train/read-planned-run.ts';
import { applyRunFlags, fieldsOf } from '../train/run-flags.ts';

export async function readPlannedFork(context: ForkContext): Promise<PlannedRun> {
  const { flags, args, project, cwd, env } = context;
  const parentName = readCheckpointName(args.parent);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const run = checkRunName(flags.run);
  const agentFile = await loadAgent(args.agent, cwd);
  const store = await openProjectStore(project, env);
  const known = await readRun(store, run);
  const recorded = known?.file.config ?? null;
  const parent = await findParent(store, parentName, recorded);
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.manifest.adapter);
  const resolved = await readParentModel(parent, flags['base-model'], template, context);
  const model = await settleBaseModel(resolved, parent.config.baseModel, context);
  const { agent } = agentFile;
  const names = { run, agent: agent.name, baseModel: model.name, ...judgeOptions(agent) };
  const loss = recorded?.train.loss ?? null;
  const start = { ...inherit(parent.config, values, loss), ...names, parent: parent.checkpoint };
  const config = applyRunFlags(start, values, loss);
  checkFits(parent, config);
  await checkReference(reference, config, { store, project, env, flags, begun: parent.checkpoint });
  await checkEngine(config, flags, context);
  const decided = await decideRunEngine(config, known, store, flags, context);
  await refuseIdleCorrection(config, recorded, flags, context, decided.kind);
  await checkScenarios(agentFile, config);
  await checkJudge(agent, config, { store, env });
  const given = {
    agentFile: agentFile.path,
    models: model.models,
    template,
    examples: null,
    adapterFiles: [],
    hasOwnMicroBatch: true,
    decided,
    store,
  };
  return { config, ...given, ...(await findExisting(store, config)) };
}

const DEPENDENTS = [
  ['reduction', 'reductionTokens'],
  ['correction', 'correctionCap'],
  ['klCoefficient', 'klAs'],
  ['klCoefficient', 'klEstimator'],
  ['klAs', 'klEstimator'],
  ['klCoefficient', 'klReference'],
  ['overlongBuffer', 'overlongPenalty'],
] as const;

/** Whether a loss acts depends on them. */
const UPDATES = ['passes', 'miniBatches'] as const;

/**
 * The parent's configuration, except for defaults that depend on a changed flag, and for a loss with options that have no
 * effect, unless the fork itself was `recorded` with it.
 */
function inherit(parent: RunConfig, values: ReadonlyMap<string, unknown>, recorded: LossConfig | null): RunOptions {
  // A warm start is behind it, and of an adapter from elsewhere the parent has become a checkpoint.
  const {
    finalLearningRateShare,
    learningRateRestarts,
    train,
    supervised: _supervised,
    startAdapter: _,
    ...others
  } = parent;
  const decay = { finalLearningRateShare, ...(learningRateRestarts === undefined ? {} : { learningRateRestarts }) };
  const isChanged = (path: string, value: unknown) => values.has(path) && values.get(path) !== value;
  const updates = Object.fromEntries(
    UPDATES.filter((name) => values.has(`train.${name}`)).map((name) => [name, values.get(`train.${name}`)]),
  );
  const maxStaleness = (values.get('maxStaleness') ?? parent.maxStaleness) as RunConfig['maxStaleness'];
  const isAccepted =
    complaintAboutLoss({ maxStaleness, train: { ...train, ...updates } }) === null ||
    canonicalJson(train.loss) === canonicalJson(recorded);
  const hasOwnLoss = isAccepted && !isChanged('train.loss.name', train.loss.name);
  const kept = withoutDependents(train, (name) => isChanged(`train.${name}`, train[name]));
  return {
    ...others,
    ...(isChanged('learningRateSchedule', parent.learningRateSchedule) ? {} : decay),
    train: { ...kept, ...recordedDefaults(parent), ...(hasOwnLoss ? {} : { loss: {} }) },
  };
}

/** An option goes where another one, which it belongs to, is changed. */
function withoutDependents(train: TrainConfig, isChanged: (name: keyof TrainConfig) => boolean): TrainConfig {
  const gone = new Set<string>(DEPENDENTS.filter(([name]) => isChanged(name)).map(([, dependent]) => dependent));
  return Object.fromEntries(Object.entries(train).filter(([name]) => !gone.has(name))) as TrainConfig;
}
