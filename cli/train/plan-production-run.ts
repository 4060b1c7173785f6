/** Plan of a run that trains recorded conversations: which of them, from which checkpoint, with which settings. */
import type { ProductionConfig, ProductionSource, RunConfig } from '../../core/contract.ts';
import { stepsOfPass } from '../../core/plan-production.ts';
import { describeTooFew } from '../../core/production.ts';
import { readAncestors } from '../../store/records/ancestors.ts';
import { findConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import type { ChosenConversations, ChoiceRules } from '../../store/records/production-choice.ts';
import { chooseRecorded, takeRecorded } from '../../store/records/production-dataset.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { findServing } from '../../store/records/serving-checkpoint.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { UsageError, WorkFailed } from '../command-line/errors.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { findParent, readParentModel, type Parent } from '../planning/find-parent.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { planRun, type RunPlan } from '../planning/plan-run.ts';
import {
  expectProduction,
  productionOptions,
  refusePlayFlags,
  tellConversations,
} from '../planning/read-production.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import type { TrainContext } from './command.ts';

export async function planProductionRun(context: TrainContext, source: ProductionSource): Promise<RunPlan> {
  const { flags, args, project, cwd, env, output } = context;
  refusePlayFlags(flags);
  const agentFile = await loadAgent(args.agent, cwd);
  const run = checkRunName(flags.run ?? `${source.run}-production`);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const store = await openProjectStore(project, env);
  const known = await readRun(store, run);
  const recorded = known?.file.config ?? null;
  const parent = await findStart(store, source, flags.from, recorded);
  const rules = { run, ancestors: await readAncestors(store, parent.checkpoint, source.maxPolicyAge) };
  const production = recorded?.production ?? (await expectChosen(store, source, rules, parent));
  const model = await readParentModel(parent, flags['base-model'], template, context);
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.adapter);
  const names = { run, agent: agentFile.agent.name, baseModel: model.name };
  const options = productionOptions(parent);
  const groupsPerStep = Number(values.get('groupsPerStep') ?? options.groupsPerStep);
  const fresh = { ...names, ...options, production, steps: source.epochs * stepsOfPass(production, groupsPerStep) };
  const asked = applyRunFlags(fresh, values);
  const given = { agentFile, template, adapter: null, examples: null, hasOwnMicroBatch: true };
  const plan = await planRun({ asked, model, parent, known, reference, store, flags, ...given }, context);
  if (recorded !== null) return plan;
  // All else is checked: from here on the conversations are this run's.
  const taken = await takeRecorded(store, source.run, rules);
  if (taken === null) throw tooFew(source, { conversations: [], trainedBefore: 0, leftOut: {} });
  output.line(`trains ${tellConversations(taken)}`);
  const steps = source.epochs * stepsOfPass(taken, groupsPerStep);
  return { ...plan, config: { ...plan.config, production: taken, steps } };
}

async function findStart(
  store: Store,
  { run: served }: ProductionSource,
  from: string | null,
  recorded: RunConfig | null,
): Promise<Parent> {
  if (recorded !== null && recorded.production === undefined)
    throw new UsageError(
      `the run ${recorded.run} exists and trains no recorded conversations; pass another --run for those of ${served}`,
    );
  if (from !== null) return findParent(store, readCheckpointName(from), recorded);
  const checkpoint = recorded?.parent ?? (await findServing(store, served));
  return { ...(await findConfiguredCheckpoint(store, checkpoint)), checkpoint };
}

async function expectChosen(
  store: Store,
  source: ProductionSource,
  rules: ChoiceRules,
  { checkpoint }: Parent,
): Promise<ProductionConfig> {
  const choice = await chooseRecorded(store, source.run, rules);
  const { length } = choice.conversations;
  if (length < source.atLeast) throw tooFew(source, choice);
  return expectProduction({ ...source, atLeast: length }, checkpoint);
}

function tooFew(source: ProductionSource, { conversations, leftOut }: ChosenConversations): WorkFailed {
  return new WorkFailed(
    `${describeTooFew(source, { found: conversations.length, leftOut })}; wait for more feedback, or lower --at-least`,
  );
}
