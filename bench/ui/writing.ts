/** Options of a made store, and how its parts name things. */
import type { RunConfig, RunState } from '../../core/contract/contract.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import type { Manifest } from '../../store/records/runs/manifest.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptShape, Bug, MadeAttempt } from './made-attempts.ts';

export interface UiStoreOptions {
  readonly folder: string;
  readonly run?: string;
  readonly steps?: number;
  readonly groups?: number;
  /** Attempts of a group. */
  readonly attempts?: number;
  readonly turns?: number;
  readonly words?: number;
  readonly blobBytes?: number;
  readonly evalEvery?: number;
  readonly bug?: Bug;
  readonly state?: RunState['state'];
  /** Time of the last commit. */
  readonly endsAt?: number;
  readonly onStep?: (step: number) => void;
}

export type Options = Required<UiStoreOptions>;

export const DEFAULTS = {
  run: 'large',
  steps: 2000,
  groups: 1,
  attempts: 5,
  turns: 20,
  words: 20,
  blobBytes: 40_000,
  evalEvery: 200,
  bug: 'none',
  state: 'completed',
  endsAt: Date.UTC(2026, 10, 1),
  onStep: () => undefined,
} as const;

export interface Writing {
  readonly store: Store;
  readonly options: Options;
  readonly config: RunConfig;
  readonly shape: AttemptShape;
}

export interface PlayedGroup {
  readonly ref: Manifest['groups'][number];
  readonly made: readonly MadeAttempt[];
  readonly rewards: readonly (number | null)[];
  readonly hasVariance: boolean;
}

export const adapterName = (step: number): string => sha256Hex(`adapter ${step}`);
