import type { Once } from '../tools/run-call.ts';

/** A rollout's context will do, and so will that of an attempt of a script. */
export interface McpContext {
  once: Once;
  signal: AbortSignal;
}
