/** Which attempt the code that runs belongs to: calls find their recorder by it, wherever their client was made. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Checkpoint } from '../../core/contract/contract.ts';
import type { HostedCalls } from '../../play/hosted/hosted-calls.ts';
import type { Fetch } from '../../play/transports/fetch.ts';

export interface PlayingAttempt {
  /** The model that is played, by the name of its run. */
  readonly run: string;
  /** Samples this attempt: a model that is trained meanwhile has another one already. */
  readonly checkpoint: Checkpoint;
  readonly seed: number;
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** To the played model, recorded; as one of its roles where it has any. */
  readonly fetchAs: (role: string | null) => Fetch;
  readonly openHosted: HostedCalls['open'];
  /** To other models, by their names. */
  readonly others: Map<string, Fetch>;
}

const storage = new AsyncLocalStorage<PlayingAttempt>();

export function playAs<T>(attempt: PlayingAttempt, play: () => T): T {
  return storage.run(attempt, play);
}

export function playingAttempt(): PlayingAttempt | undefined {
  return storage.getStore();
}
