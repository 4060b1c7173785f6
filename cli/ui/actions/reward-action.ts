/** Gives an attempt its reward, as `temper reward` does. */
import { openGiver } from '../../../store/records/give-reward.ts';
import { UsageError } from '../../command-line/errors.ts';
import { describeGiving } from '../../rewards/give-rewards.ts';
import { sayFailure, wakeOverServer } from '../../connections/wake.ts';
import type { PlanAction } from './planned-action.ts';
import { requireActed } from './read-request.ts';
import { optionWords, shellText } from './shell-text.ts';

export const planReward: PlanAction = async (request, place) => {
  const { run } = await requireActed(place.store, request);
  const { attempt, reward, requestId: key = null } = request;
  if (attempt === undefined || reward === undefined)
    throw new UsageError('a reward needs attempt, such as 0.3.2.5, and reward, a number; send both');
  const note = request.note?.trim() || null;
  const gift = { attempt, reward, note, key };
  const giver = await openGiver(place.store, run);
  const refusal = await giver.check(gift);
  if (refusal !== null) throw new UsageError(refusal.message);
  return {
    says: `The attempt ${attempt} of ${run} gets the reward ${reward}. You can change it until its step is decided.`,
    command: shellText(['temper', 'reward', run, attempt, String(reward), ...optionWords('note', note)]),
    perform: async () => {
      const answer = await giver.give(gift);
      if (answer.outcome === 'refused') throw new UsageError(answer.message);
      if (answer.missing === 0 && !answer.isDecided) wakeOverServer(place, place.store, run).catch(sayFailure);
      return { says: describeGiving(attempt, answer) };
    },
  };
};
