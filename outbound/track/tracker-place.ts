import type { Store } from '../../store/store.ts';

/** The surroundings of trackers; keys are in `env` alone. */
export interface TrackerPlace {
  readonly store: Store;
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof globalThis.fetch;
}
