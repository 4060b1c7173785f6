import { aiSdk } from './ai-sdk.ts';
import type { ActivityDialect } from './dialect.ts';
import { openaiAgents, openaiAgentsStream } from './openai-agents.ts';

/** Model activities by their types, as SDKs on Temporal name them. Their first argument is the request. */
export const ACTIVITY_DIALECTS: Readonly<Record<string, ActivityDialect>> = {
  invokeModelActivity: openaiAgents,
  invokeModelStreamActivity: openaiAgentsStream,
  invokeModel: aiSdk,
  // It tells a listener what is sampled, and the workflow the whole.
  invokeModelStreaming: aiSdk,
};
