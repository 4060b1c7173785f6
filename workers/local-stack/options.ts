import type { EngineOverrides } from '../../core/rules/engine-rules.ts';
import type { TemperConfig } from '../config/config.ts';
import type { EngineDecision, EngineUse } from './decide-engine.ts';
import type { StackEvent } from '../events.ts';
import type { StackDescription } from './protocol/protocol.ts';

export interface LocalStackOptions {
  readonly project: string;
  readonly agentFile: string | null;
  /** Folders of base models by name. */
  readonly models: Readonly<Record<string, string>>;
  readonly onEvent: (event: StackEvent) => void;
  /** Flags of the GPU worker that the user passed. */
  readonly overrides?: EngineOverrides;
  /** Ports the user asked for by name; taken ones are refused. */
  readonly uiPort?: number | null;
  readonly enginePort?: number | null;
  readonly metricsPort?: number | null;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** Engine, if the command has decided it for its own plans. */
  readonly decided?: EngineDecision;
  /** Facts for the decision otherwise; absent: no requirements. */
  readonly use?: EngineUse;
  /** Throws if the running stack does not fit the command. */
  readonly checkJoined?: (stack: StackDescription) => void;
  /** Instead of `temporal.config.ts`. */
  readonly config?: TemperConfig;
  /** Stand-ins for tests; else what the machine has. */
  readonly commands?: StackCommands;
}

/** Command lines of the children, if unusual. */
interface StackCommands {
  readonly temporal?: readonly string[];
  readonly gpuWorker?: readonly string[];
  readonly worker?: readonly string[];
}
