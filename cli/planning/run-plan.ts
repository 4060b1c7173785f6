/** A planned run, as sessions, estimates and checks of this machine take it. */
import type { RunConfig } from '../../core/contract/contract.ts';
import type { Agent } from '../../play/agent.ts';
import type { Store } from '../../store/store.ts';
import type { EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import type { ChatTemplate } from './chat-template.ts';
import type { Existing } from './find-existing.ts';

/** A run that this command can start or continue. */
export interface RunPlan extends Existing {
  readonly config: RunConfig;
  readonly agentFile: string;
  /** What a command has loaded and counted; null for a run with supervised steps only. */
  readonly played: { readonly agent: Agent; readonly evalScenarios: number } | null;
  readonly models: Readonly<Record<string, string>>;
  /** Template of this command; stored before the run starts. */
  readonly template: ChatTemplate | null;
  /** Examples of the supervised steps, stored likewise; null if there are none. */
  readonly examples: Uint8Array | null;
  /** Files of `--adapter`; stored before the run starts. */
  readonly adapterFiles: readonly Uint8Array[];
  /** True if the user or the parent run set the micro-batch size. */
  readonly hasOwnMicroBatch: boolean;
  readonly decided: EngineDecision;
  readonly store: Store;
}
