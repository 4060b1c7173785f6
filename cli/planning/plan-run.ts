/** From what a command has read to a run that may be started: one order of checks. What may download comes last. */
import type { RunConfig } from '../../core/contract.ts';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import type { PeftAdapter } from '../../store/records/peft-adapter.ts';
import type { StoredRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { BaseModel } from '../../workers/base-model.ts';
import type { EngineKind } from '../../workers/engine-choices.ts';
import type { EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { modulePath } from '../../workers/module-path.ts';
import { settleBaseModel, type ModelContext } from './base-model.ts';
import { keepRecordedDate, type ChatTemplate } from './chat-template.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { checkEngine, refuseIdleCorrection } from './check-engine.ts';
import { checkSameBase, checkSameShape, type Parent } from './find-parent.ts';
import { checkJudge } from './check-judge.ts';
import { decideRunEngine } from './decide-run-engine.ts';
import { findExisting, type Existing } from './find-existing.ts';
import { checkReference } from './kl-reference.ts';
import { checkScenarios, type AgentFile } from './load-agent.ts';
import { checkStartAdapter, filesOf } from './start-adapter.ts';

export interface PlannedRun extends Existing {
  readonly config: RunConfig;
  readonly agentFile: string;
  readonly models: Readonly<Record<string, string>>;
  /** Given with this command: stored before the run starts. */
  readonly template: ChatTemplate | null;
  /** Of the supervised steps, likewise; null where there are none. */
  readonly examples: Uint8Array | null;
  /** The files of `--adapter`: stored before the run starts. */
  readonly adapterFiles: readonly Uint8Array[];
  /** A person, or the run that it is forked from, said how large micro-batches are. */
  readonly hasOwnMicroBatch: boolean;
  /** What samples, unless the local stack runs already. */
  readonly decided: EngineDecision;
  readonly store: Store;
}

/** What a command asks for, and what it was read from. Its base model is not settled yet. */
export interface AskedRun {
  readonly asked: RunConfig;
  readonly model: BaseModel;
  /** Null for a run of supervised steps alone. */
  readonly agentFile: AgentFile | null;
  /** What the run begins with; null where it begins with the base model or an adapter. */
  readonly parent: Parent | null;
  /** The run of this name in the store, where there is one. */
  readonly known: StoredRun | null;
  readonly adapter: PeftAdapter | null;
  readonly reference: TrainedPolicy | null;
  readonly store: Store;
  /** Null for a command that starts no engine. */
  readonly flags: EngineFlags | null;
}

export interface Draft extends AskedRun, Pick<PlannedRun, 'template' | 'examples' | 'hasOwnMicroBatch'> {
  readonly flags: EngineFlags;
}

export async function planRun(draft: Draft, context: ModelContext): Promise<PlannedRun> {
  const { asked, known, agentFile, adapter, store, flags, template, examples, hasOwnMicroBatch } = draft;
  const decided = await decideRunEngine(asked, known, store, flags, context);
  await checkAsked(draft, context, decided.kind);
  const { config, models } = await settleRun(draft, context);
  return {
    config,
    agentFile: agentFile?.path ?? modulePath('./supervised-agent'),
    models,
    template,
    examples,
    adapterFiles: filesOf(adapter),
    hasOwnMicroBatch,
    decided,
    store,
    ...(await findExisting(store, config)),
  };
}

/** What is known without the base model's files. `usual`: what samples unless flags or the configuration say so. */
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
  await checkScenarios(agentFile, asked);
  await checkJudge(agentFile.agent, asked, { store, env: context.env });
}

/** May download the base model. */
export async function settleRun(
  { asked, model, parent, known, reference, store, flags }: AskedRun,
  context: ModelContext,
): Promise<Pick<PlannedRun, 'config' | 'models'>> {
  const recorded = known?.file.config ?? null;
  const named = (recorded ?? parent?.config)?.baseModel ?? null;
  const { name: baseModel, models } = await settleBaseModel(model, named, context);
  const config = keepRecordedDate({ ...asked, baseModel }, recorded);
  if (parent !== null) checkSameBase(parent, config);
  const { project, env } = context;
  const begun = parent?.checkpoint ?? (recorded && { run: config.run, branch: 0, step: 0 });
  await checkReference(reference, config, { store, project, env, flags, begun });
  return { config, models };
}
