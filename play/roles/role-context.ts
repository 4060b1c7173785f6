/** A role as a rollout sees it: a client of its own, and a reward of its own. */
import type OpenAI from 'openai';

import type { Metrics } from '../../core/statistics.ts';

/** A reward for each role that is trained, or that a league plays; null for one that did not play in this attempt. */
export interface RoleResult<Rewarded extends string = string> {
  roleRewards: Readonly<Record<Rewarded, number | null>>;
  metrics?: Readonly<Metrics>;
}

/** A role of the agent: its player, ready for the official client or for any other SDK. */
export interface RoleContext {
  /** The official client, pointed at the role's player. */
  openai: OpenAI;
  /** To be passed as `model`. */
  model: string;
  /** Answers the calls of any other SDK, in place of the global fetch: chat completions, responses and messages. */
  fetch: (url: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** For the same SDK. */
  baseURL: string;
  /** For SDKs that require one. */
  apiKey: string;
}
