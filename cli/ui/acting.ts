/** Actions and chats of `temper ui`, which take 30 MB: they are loaded with the first of them. */
import type { ActionTable } from './actions/planned-action.ts';
import { createChat, type UiChat } from './chat/chat.ts';
import { Engines, type EnginesOptions } from './chat/engines.ts';
import { planEvaluate } from './evaluate/plan-evaluate.ts';
import { createReplayAction } from './replay/replay-action.ts';
import { planForkOf } from './actions/fork-action.ts';
import { planPause, planResume, planRollback, planSet, planStop } from './actions/steer-actions.ts';

export interface Acting {
  readonly actions: ActionTable;
  readonly chat: UiChat;
  close(): Promise<void>;
}

export function openActing(options: EnginesOptions): Acting {
  const engines = new Engines(options);
  return { actions: uiActions(engines), chat: createChat(options, engines), close: () => engines.close() };
}

/** Every action of `temper ui`. `engines`: those that answer chats. */
const uiActions = (engines: Engines): ActionTable => ({
  pause: planPause,
  resume: planResume,
  stop: planStop,
  set: planSet,
  rollback: planRollback,
  fork: planForkOf,
  evaluate: planEvaluate,
  replay: createReplayAction(engines),
});
