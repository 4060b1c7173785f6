/** Plan of a fork: its parent's configuration with the changes by flags, and the checkpoint that it starts from. */
import type { RunConfig } from '../../core/contract.ts';
import { withoutDependents } from '../../core/config-rules.ts';
import { findLossProblem } from '../../core/loss-options.ts';
import type { RunOptions } from '../../core/run-defaults.ts';
import { roleTrainOptions } from '../../core/role-rules.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { judgeOptions } from '../planning/check-judge.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { findParent, readParentModel } from '../planning/find-parent.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { planRun, type RunPlan } from '../planning/plan-run.ts';
import { roleOptions } from '../planning/read-roles.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import type { ForkContext } from './command.ts';

export async function planFork(context: ForkContext): Promise<RunPlan> {
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
  const values = fieldsOf(flags, template, reference?.adapter);
  const model = await readParentModel(parent, flags['base-model'], template, context);
  const { agent } = agentFile;
  const ofAgent = { ...judgeOptions(agent), ...(await roleOptions(agent, { store, env })) };
  const names = { run, agent: agent.name, baseModel: model.name, ...ofAgent };
  const inherited = inherit(parent.config, values);
  const train = { ...inherited.train, ...roleTrainOptions(agent) };
  const asked = applyRunFlags({ ...inherited, ...names, train, parent: parent.checkpoint }, values);
  const given = { agentFile, template, adapter: null, examples: null, hasOwnMicroBatch: true };
  return planRun({ asked, model, parent, known, reference, store, flags, ...given }, context);
}

/** Options that decide whether a loss has an effect. */
const UPDATES = ['passes', 'miniBatches'] as const;

/** The parent's configuration, except for defaults that depend on a changed flag, and for a loss with options that have no effect. */
function inherit(parent: RunConfig, values: ReadonlyMap<string, unknown>): RunOptions {
  // Not inherited: the warm start is done, a start adapter is part of the parent's checkpoint, and roles and external rewards are the agent's.
  const {
    finalLearningRateShare,
    learningRateRestarts,
    train,
    supervised: _supervised,
    startAdapter: _,
    roles: _roles,
    competing: _competing,
    external: _external,
    ...others
  } = parent;
  const decay = { finalLearningRateShare, learningRateRestarts };
  const isChanged = (path: string, value: unknown) => values.has(path) && values.get(path) !== value;
  const updates = Object.fromEntries(
    UPDATES.filter((name) => values.has(`train.${name}`)).map((name) => [name, values.get(`train.${name}`)]),
  );
  const maxStaleness = (values.get('maxStaleness') ?? parent.maxStaleness) as RunConfig['maxStaleness'];
  const groupsAhead = (values.get('groupsAhead') ?? parent.groupsAhead) as RunConfig['groupsAhead'];
  const isAccepted = findLossProblem({ maxStaleness, groupsAhead, train: { ...train, ...updates } }) === null;
  const hasOwnLoss = isAccepted && !isChanged('train.loss.name', train.loss.name);
  const kept = withoutDependents(train, (name) => isChanged(`train.${name}`, train[name]));
  return {
    ...others,
    ...(isChanged('learningRateSchedule', parent.learningRateSchedule) ? {} : decay),
    train: { ...kept, ...(hasOwnLoss ? {} : { loss: {} }) },
  };
}
