import type { EngineOverrides } from '../../core/engine-rules.ts';
import type { TemperConfig } from '../config/config.ts';
import type { EngineDecision, EngineUse } from './decide-engine.ts';
import type { StackEvent } from '../events.ts';
import type { StackDescription } from './protocol/protocol.ts';

export interface LocalStackOptions {
  readonly project: string;
  readonly agentFile: string | null;
  /** What base model names mean: name → folder. */
  readonly models: Readonly<Record<string, string>>;
  readonly onEvent: (event: StackEvent) => void;
  /** Flags of the GPU worker that the user passed. */
  readonly overrides?: EngineOverrides;
  /** Ports the user asked for by name; taken ones are refused. */
  readonly uiPort?: number | null;
  readonly enginePort?: number | null;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** What samples, where the command has decided it for its own plans. */
  readonly decided?: EngineDecision;
  /** Else it is decided by this; absent: whatever comes. */
  readonly use?: EngineUse;
  /** Throws where a stack that runs already is not what the command needs. */
  readonly checkJoined?: (stack: StackDescription) => void;
  /** In the place of `temporal.config.ts`. */
  readonly config?: TemperConfig;
  /** Stand-ins for tests; else what the machine has. */
  readonly commands?: StackCommands;
}

/** Command lines of the children, where they are not the usual ones. */
export interface StackCommands {
  readonly temporal?: readonly string[];
  readonly gpuWorker?: readonly string[];
  readonly worker?: readonly string[];
}
