/**
 * The one planner of runs: a source, a checkpoint to start from and flags become the configuration that is recorded.
 * Every check comes before the first download, and every download before anything is started.
 */
import type { FlagValues } from '../../operations/flags.ts';
import type { ProductionSource, RunConfig } from '../../core/contract/contract.ts';
import type { TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { startFrom, type PeftAdapter } from '../../store/records/runs/peft-adapter.ts';
import { readRun, type StoredRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { BaseModel } from '../../workers/base-models/base-model.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { modulePath } from '../../workers/process/module-path.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { pinModel, readBaseModel, readConfiguredModel, requireBaseModel } from './base-model.ts';
import { keepDate, keepRecordedDate, proveChatTemplate, readChatTemplate, type ChatTemplate } from './chat-template.ts';
import { checkEngine, decideRunEngine, refuseIdleCorrection } from './check-engine.ts';
import { checkJudge } from './check-judge.ts';
import { findExisting, type Existing } from './find-existing.ts';
import {
  checkSameBase,
  checkSameShape,
  checkStartAdapter,
  readParentModel,
  readStartAdapter,
  type Parent,
} from './find-parent.ts';
import { fitToMemory } from './fit-memory.ts';
import { checkReference, readKlReference } from './kl-reference.ts';
import { checkScenarios } from './load-agent.ts';
import { proveExamples } from './read-examples.ts';
import { describeConversations, takeChosen } from './read-production.ts';
import { checkFrozenBases } from './read-roles.ts';
import { applyRunFlags, fieldsOf } from './run-flags.ts';
import type { RUN_FLAGS } from './run-flag-table.ts';
import type { RunPlan } from './run-plan.ts';
import type { RunSource } from './run-source.ts';
import { loadSource, sourceOptions, stepsOfProduction, type LoadedSource } from './source-options.ts';

export interface RunRequest {
  readonly source: RunSource;
  /** Null: the source's. */
  readonly name: string | null;
  /** Finds the checkpoint that the run starts from; null: the base model, or an adapter. */
  start(store: Store, recorded: RunConfig | null): Promise<Parent | null>;
  readonly flags: FlagValues<typeof RUN_FLAGS> & {
    readonly epochs: number | null;
    readonly adapter?: string | null;
    readonly 'warm-start'?: string | null;
  };
  /** Flags of the local stack; null for a schedule, whose runs wait for workers that were started elsewhere. */
  readonly engine: EngineFlags | null;
}

interface AskedRun {
  readonly loaded: LoadedSource;
  readonly asked: RunConfig;
  /** Not pinned yet. */
  readonly model: BaseModel;
  readonly parent: Parent | null;
  /** Stored run of this name, if any. */
  readonly known: StoredRun | null;
  readonly template: ChatTemplate | null;
  readonly adapter: PeftAdapter | null;
  readonly reference: TrainedPolicy | null;
  /** Given values by the path of their field. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly store: Store;
}

/** A run with all that is known of it before the store is asked whether it exists. */
interface RunDraft extends AskedRun {
  readonly config: RunConfig;
  /** Base models that the command registers, by name. */
  readonly models: Readonly<Record<string, string>>;
  /** Held-out scenarios that an evaluation plays; null without an agent. */
  readonly evalScenarios: number | null;
  /** Sampling engine, unless the local stack runs already; null for a schedule. */
  readonly decided: EngineDecision | null;
}

/** `now`: the run begins after this; otherwise it is only looked at. */
export type PlanMode = 'now' | 'estimate';

export async function planRun(
  context: CommandEnvironment,
  request: RunRequest & { readonly engine: EngineFlags },
  mode: PlanMode,
): Promise<RunPlan> {
  const draft = await draftRun(context, request);
  const plan = { ...planOf(draft), ...(await findExisting(draft.store, draft.config)) };
  if (mode === 'estimate' || plan.existing !== null) return plan;
  const settled = await settleRun(plan, request.engine, context);
  if (request.source.kind !== 'production') return settled;
  return takeConversations(settled, request.source.production, draft, context);
}

function planOf({ loaded, evalScenarios, adapter, parent, values, ...draft }: RunDraft): Omit<RunPlan, keyof Existing> {
  const { config, models, template, store, decided } = draft;
  const { agentFile, chats } = loaded;
  return {
    config,
    agentFile: agentFile?.path ?? modulePath('./supervised-agent'),
    played: agentFile && evalScenarios !== null ? { agent: agentFile.agent, evalScenarios } : null,
    models,
    template,
    examples: chats?.bytes ?? null,
    adapterFiles: adapter?.files ?? [],
    hasOwnMicroBatch: parent !== null || values.has('train.microBatchTokens'),
    decided: decided!,
    store,
  };
}

/** The run as flags ask for it, checked, with a pinned base model. */
export async function draftRun(context: CommandEnvironment, request: RunRequest): Promise<RunDraft> {
  const run = await askRun(context, request);
  const { asked, known, store } = run;
  const decided = request.engine && (await decideRunEngine(asked, known, store, request.engine, context));
  const evalScenarios = await checkAsked(run, request.engine, decided, context);
  return { ...run, ...(await pinRun(run, request.engine, context)), evalScenarios, decided };
}

async function askRun(context: CommandEnvironment, request: RunRequest): Promise<AskedRun> {
  const { source, flags, engine } = request;
  const { project, cwd, env } = context;
  const loaded = await loadSource(source, { name: request.name, warmStart: flags['warm-start'] ?? null }, cwd);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const adapter = await readStartAdapter(flags.adapter ?? null, cwd);
  const store = await openProjectStore(project, env);
  const isScheduled = engine === null;
  const { run } = loaded;
  const known = isScheduled ? null : await readRun(store, run);
  const recorded = known?.file.config ?? null;
  const parent = await request.start(store, recorded);
  const model = await readModel(request, parent, template, context);
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.adapter);
  const given = { run, parent, recorded, values, epochs: flags.epochs, isScheduled, store, env };
  const options = await sourceOptions(source, loaded, given);
  const begun = startFrom(adapter, { ...options, run, agent: loaded.agent, baseModel: model.name });
  const asked = applyRunFlags(begun, values);
  return { loaded, asked, model, parent, known, template, adapter, reference, values, store };
}

function readModel(
  { source, flags, engine }: RunRequest,
  parent: Parent | null,
  template: ChatTemplate | null,
  context: CommandEnvironment,
): Promise<BaseModel> {
  const named = flags['base-model'];
  if (engine === null) {
    const served = source.kind === 'production' ? (parent?.config.baseModel ?? null) : null;
    const name = named ?? served ?? requireBaseModel(flags, ', a name of temporal.config.ts');
    return readConfiguredModel(name, context, template !== null);
  }
  if (parent !== null) return readParentModel(parent, named, template, context);
  return readBaseModel(requireBaseModel(flags), context, template !== null);
}

/** Checks that need no files of the base model; returns how many scenarios are held out. */
async function checkAsked(
  { asked, loaded, parent, known, adapter, store }: AskedRun,
  flags: EngineFlags | null,
  decided: EngineDecision | null,
  context: CommandEnvironment,
): Promise<number | null> {
  const { agentFile } = loaded;
  if (parent !== null) checkSameShape(parent, asked);
  checkStartAdapter(adapter, asked);
  await checkEngine(asked, flags, context);
  if (agentFile === null) return null;
  await refuseIdleCorrection(asked, known?.file.config ?? null, flags, context, decided?.kind);
  const { held, of } = await checkScenarios(agentFile, asked, context);
  if (held < of)
    context.output.errorLine(
      `note: evaluations play ${held} of the ${of} held-out scenarios, a sample that is the same in every run`,
    );
  const recorded = known?.file.config.judge ?? null;
  await checkJudge(agentFile.agent, asked, { store, env: context.env, recorded });
  return held;
}

/** Pins the base model, which may download it. */
async function pinRun(
  { asked, model, parent, known, reference, store }: AskedRun,
  flags: EngineFlags | null,
  context: CommandEnvironment,
): Promise<Pick<RunDraft, 'config' | 'models'>> {
  const recorded = known?.file.config ?? null;
  const named = (recorded ?? parent?.config)?.baseModel ?? null;
  const { name: baseModel, models } = await pinModel(model, named, context);
  const config = keepRecordedDate({ ...asked, baseModel }, recorded);
  if (parent !== null) checkSameBase(parent, config);
  await checkFrozenBases(config, store);
  const { project, env } = context;
  const begun = parent?.checkpoint ?? (recorded && { run: config.run, branch: 0, step: 0 });
  await checkReference(reference, config, { store, project, env, flags, begun });
  return { config, models };
}

/** All else is checked: the conversations become this run's. */
async function takeConversations(
  plan: RunPlan,
  source: ProductionSource,
  { parent, values }: RunDraft,
  { output }: CommandEnvironment,
): Promise<RunPlan> {
  const { config, store } = plan;
  const production = await takeChosen(source, { run: config.run, parent: parent!, recorded: null, store });
  output.line(`trains ${describeConversations(production)}`);
  return { ...plan, config: { ...config, production, steps: stepsOfProduction(source, production, values) } };
}

/** A new run as it can be played here: its chat template is checked, its date is kept, and it fits into the memory. */
export async function settleRun(plan: RunPlan, flags: EngineFlags, context: CommandEnvironment): Promise<RunPlan> {
  const { baseModel, rollout } = plan.config;
  const isInherited = rollout.chatTemplateSha256 !== undefined;
  const writesDate = await proveChatTemplate({ ...plan, isInherited, baseModel }, context);
  const dated = writesDate ? { ...plan, config: keepDate(plan.config, context.output) } : plan;
  return fitToMemory(dated, flags, context, await proveExamples(dated, context));
}
