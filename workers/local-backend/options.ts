import type { StackEvent } from '../events.ts';

export interface LocalBackendOptions {
  /** The project, whose `.temper/` holds all state; by default the nearest parent folder that is a project. */
  folder?: string;
  /** Receives events of the local stack; by default the important ones are printed to stderr. */
  onEvent?: (event: StackEvent) => void;
  env?: NodeJS.ProcessEnv;
}
