/**
 * Which conversations of a run's production are trained: those with feedback that no other run has trained, answered by
 * the policy that is trained or by one a bounded number of steps older. Pure.
 */
import type { Recording } from '../../../core/contract/records.ts';
import type { RecordedSampler } from '../../../core/contract/contract.ts';
import type { RatedConversation } from './feedback.ts';
import { wasCut, type AttemptRecord, type CallRecord } from '../groups/trajectories.ts';

type RatedTurn = RatedConversation['turns'][number];

/** Policies that may have answered, by the hash of their adapter: a checkpoint (`age` 0) and its ancestors. */
export type Ancestors = ReadonlyMap<string, RecordedSampler>;

export interface ChoiceRules {
  /** Run that trains them. */
  run: string;
  ancestors: Ancestors;
}

/** Why a conversation with feedback is not trained. */
type LeftOut = NonNullable<Recording['untrainable']> | 'several-policies' | 'other-policy';

export interface ChosenConversations {
  /** In the order of the recordings. */
  conversations: RatedConversation[];
  /** How many others an earlier run has trained. */
  trainedBefore: number;
  leftOut: Partial<Record<LeftOut, number>>;
}

export function chooseConversations(rated: readonly RatedConversation[], rules: ChoiceRules): ChosenConversations {
  const open = rated.filter(({ trainedBy }) => trainedBy === null || trainedBy === rules.run);
  const conversations: RatedConversation[] = [];
  const leftOut: ChosenConversations['leftOut'] = {};
  for (const conversation of open) {
    const reason = findReason(conversation, rules);
    if (reason === null) conversations.push(conversation);
    else leftOut[reason] = (leftOut[reason] ?? 0) + 1;
  }
  return { conversations, trainedBefore: rated.length - open.length, leftOut };
}

function findReason(conversation: RatedConversation, { ancestors }: ChoiceRules): LeftOut | null {
  const rated = ratedTurns(conversation);
  const [first, ...others] = rated.filter(isTrainable).map(({ recording }) => recording.call);
  if (first === undefined) return rated[0]?.recording.untrainable ?? 'redacted';
  if (others.some(({ adapterSha256 }) => adapterSha256 !== first.adapterSha256)) return 'several-policies';
  return ancestors.has(first.adapterSha256 ?? '') ? null : 'other-policy';
}

/** Feedback on the conversation as a whole is on all of its answers; otherwise only answers with feedback count. */
function ratedTurns({ turns, feedback }: RatedConversation): RatedTurn[] {
  return feedback === null ? turns.filter((turn) => turn.feedback !== null) : turns;
}

const isTrainable = ({ recording }: RatedTurn): boolean => recording.untrainable === null;

/** One for the conversation, or one for each rated answer if there is no feedback on the whole. */
export function toAttempts(conversation: RatedConversation): AttemptRecord[] {
  const turns = ratedTurns(conversation).filter(isTrainable);
  const { feedback } = conversation;
  if (feedback === null) return turns.map((turn) => toAttempt(turn.recording.id, [turn], turn.feedback!.reward));
  return [toAttempt(conversation.conversation, turns, feedback.reward)];
}

function toAttempt(scenarioId: string, turns: readonly RatedTurn[], reward: number): AttemptRecord {
  const calls: CallRecord[] = turns.map(({ recording }) => recording.call);
  return {
    attempt: 0,
    scenarioId,
    status: 'ok',
    failure: null,
    reward,
    metrics: {},
    logs: [],
    truncated: calls.some(wasCut),
    unclaimedAnswers: 0,
    calls,
  };
}
