/** `temper-rl/testing`: agents in unit tests, by any test runner and without an engine. */
import { patchGlobalFetch } from '../../play/transports/ambient.ts';

// Done before agents are imported, as in a worker: clients of their modules may keep the `fetch` that they find.
patchGlobalFetch();

export { playAgent, type PlayAgentOptions, type PlayedAgent } from './play-agent.ts';
export { replayAttempt } from './replay-attempt.ts';
export type {
  AnswerFunction,
  ScriptedAnswer,
  ScriptedAnswers,
  ScriptedMessage,
  ScriptedToolCall,
} from './scripted-engine.ts';
export type { ChangedRequest, ReplayedAttempt } from '../../play/replay/replay-attempt.ts';
export type { Difference } from '../../play/replay/difference.ts';
export type { SavedAttempt, SavedCall } from '../../play/replay/saved-attempt.ts';
