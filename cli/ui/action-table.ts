/** Every action of `temper ui`. */
import type { ActionTable } from './actions/planned-action.ts';
import type { Engines } from './chat/engines.ts';
import { planEvaluate } from './evaluate/plan-evaluate.ts';
import { createReplayAction } from './replay/replay-action.ts';
import { planForkOf } from './actions/fork-action.ts';
import { planPause, planResume, planRollback, planSet, planStop } from './actions/steer-actions.ts';

/** `engines`: those that answer chats. */
export const uiActions = (engines: Engines): ActionTable => ({
  pause: planPause,
  resume: planResume,
  stop: planStop,
  set: planSet,
  rollback: planRollback,
  fork: planForkOf,
  evaluate: planEvaluate,
  replay: createReplayAction(engines),
});
