import type { TemperConfig } from '../config.ts';
import type { Dtype, EngineKind } from '../engine-choices.ts';
import type { StackEvent } from '../events.ts';

export interface LocalStackOptions {
  readonly project: string;
  readonly agentFile: string | null;
  /** What base model names mean: name → folder. */
  readonly models: Readonly<Record<string, string>>;
  readonly onEvent: (event: StackEvent) => void;
  /** Ports the user asked for by name; taken ones are refused. */
  readonly uiPort?: number | null;
  readonly enginePort?: number | null;
  /** What the user asked of the GPU worker by name; null: as `temporal.config.ts` has it. */
  readonly device?: string | null;
  readonly dtype?: Dtype | null;
  readonly devices?: number | null;
  readonly shardBaseModel?: boolean;
  readonly loadIn4bit?: boolean;
  readonly engine?: EngineKind | null;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** Stand-ins for tests; else `temporal.config.ts` and what the machine has. */
  readonly config?: TemperConfig;
  readonly commands?: StackCommands;
}

/** Command lines of the children, where they are not the usual ones. */
export interface StackCommands {
  readonly temporal?: readonly string[];
  readonly gpuWorker?: readonly string[];
  readonly worker?: readonly string[];
}
