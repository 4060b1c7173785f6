/** Plans a run from what a command has read, with one order of checks. Downloads come last. */
import type { RunConfig } from '../../core/contract.ts';
import type { EngineKind } from '../../core/contract-engine.ts';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import type { PeftAdapter } from '../../store/records/peft-adapter.ts';
import type { StoredRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { BaseModel } from '../../workers/base-models/base-model.ts';
import type { EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { modulePath } from '../../workers/process/module-path.ts';
import { pinModel, type ModelContext } from './base-model.ts';
import { keepRecordedDate, type ChatTemplate } from './chat-template.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { checkEngine, refuseIdleCorrection } from './check-engine.ts';
import { checkSameBase, checkSameShape, type Parent } from './find-parent.ts';
import { checkJudge } from './check-judge.ts';
import { decideRunEngine } from './decide-run-engine.ts';
import { findExisting, type Existing } from './find-existing.ts';
import { checkReference } from './kl-reference.ts';
import { checkScenarios, type AgentFile } from './load-agent.ts';
import { checkFrozenBases } from './read-roles.ts';
import { checkStartAdapter } from './start-adapter.ts';

export interface RunPlan extends Existing {
  readonly config: RunConfig;
  readonly agentFile: string;
  readonly models: Readonly<Record<string, string>>;
  /** Template of this command; stored before the run starts. */
  readonly template: ChatTemplate | null;
  /** Examples of the supervised steps, stored likewise; null if there are none. */
  readonly examples: Uint8Array | null;
  /** Files of `--adapter`; stored before the run starts. */
  readonly adapterFiles: readonly Uint8Array[];
  /** True if the user or the parent run set the micro-batch size. */
  readonly hasOwnMicroBatch: boolean;
  /** Sampling engine, unless the local stack runs already. */
  readonly decided: EngineDecision;
  readonly store: Store;
}

/** Requested run and its sources. The base model is not pinned yet. */
export interface AskedRun {
  readonly asked: RunConfig;
  readonly model: BaseModel;
  /** Null for a run with supervised steps only. */
  readonly agentFile: AgentFile | null;
  /** Parent checkpoint; null if the run starts from the base model or an adapter. */
  readonly parent: Parent | null;
  /** Stored run of this name, if any. */
  readonly known: StoredRun | null;
  readonly adapter: PeftAdapter | null;
  readonly reference: TrainedPolicy | null;
  readonly store: Store;
  /** Null for a command that starts no engine. */
  readonly flags: EngineFlags | null;
}

export interface Draft extends AskedRun, Pick<RunPlan, 'template' | 'examples' | 'hasOwnMicroBatch'> {
  readonly flags: EngineFlags;
}

export async function planRun(draft: Draft, context: ModelContext): Promise<RunPlan> {
  const { asked, known, agentFile, adapter, store, flags, template, examples, hasOwnMicroBatch } = draft;
  const decided = await decideRunEngine(asked, known, store, flags, context);
  await checkAsked(draft, context, decided.kind);
  const { config, models } = await pinRun(draft, context);
  return {
    config,
    agentFile: agentFile?.path ?? modulePath('./supervised-agent'),
    models,
    template,
    examples,
    adapterFiles: adapter?.files ?? [],
    hasOwnMicroBatch,
    decided,
    store,
    ...(await findExisting(store, config)),
  };
}

/** Checks that need no files of the base model. `usual`: the engine unless flags or the configuration choose one. */
export async function checkAsked(
  { asked, agentFile, parent, known, adapter, store, flags }: AskedRun,
  context: ModelContext,
  usual?: EngineKind,
): Promise<void> {
  if (parent !== null) checkSameShape(parent, asked);
  checkStartAdapter(adapter, asked);
  await checkEngine(asked, flags, context);
  if (agentFile === null) return;
  await refuseIdleCorrection(asked, known?.file.config ?? null, flags, context, usual);
  const { held, of } = await checkScenarios(agentFile, asked, context);
  if (held < of)
    context.output.errorLine(
      `note: evaluations play ${held} of the ${of} held-out scenarios, a sample that is the same in every run`,
    );
  const recorded = known?.file.config.judge ?? null;
  await checkJudge(agentFile.agent, asked, { store, env: context.env, recorded });
}

/** Pins the base model, which may download it. */
export async function pinRun(
  { asked, model, parent, known, reference, store, flags }: AskedRun,
  context: ModelContext,
): Promise<Pick<RunPlan, 'config' | 'models'>> {
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
