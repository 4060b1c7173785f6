/** A recorded attempt: the conversation by turns, without what earlier turns already showed. */
import type { GivenRow } from '../../store/records/rewards/given-rewards.ts';
import type { TimesFile } from '../../store/records/file-schemas.ts';
import type { AttemptRecord, HostedCallRecord } from '../../store/records/groups/trajectories.ts';
import type {
  AttemptRow,
  AttemptView,
  GivenRewardView,
  HostedCallView,
  NeighboursOf,
  TurnView,
} from '../api/attempt-views.ts';
import type { AttemptBounds } from '../context/context.ts';
import { findOrigins, type TurnOrigin } from './histories.ts';
import { clipText, viewMessage } from './messages.ts';
import { playedCalls, type PlayedCall } from './read-played.ts';
import type { VerdictDetails } from './verdict.ts';

/** All of one attempt; a message of megabytes is cut, and the raw record has the rest. */
export const WHOLE_ATTEMPT: AttemptBounds = { calls: Infinity, textLength: 500_000 };

const MAX_LOGS = 1000;
const MAX_LOG_LENGTH = 2000;
const MAX_EXPLANATION = 20_000;

/** Facts of an attempt beside its record. */
export interface AttemptFacts extends VerdictDetails {
  readonly row: AttemptRow;
  readonly title: string;
  readonly times: TimesFile | null;
  /** Rewards that the group was given from outside. */
  readonly givenRows: readonly GivenRow[];
  readonly adapterSha256: string | null;
  readonly policy: string | null;
  readonly neighbours: NeighboursOf<string>;
}

export function viewAttempt(record: AttemptRecord, facts: AttemptFacts, bounds: AttemptBounds): AttemptView {
  const { row, title, times, givenRows, explanation, scores, adapterSha256, policy, neighbours } = facts;
  const own = times?.attemptTimes?.[record.attempt];
  const hosted = record.hostedCalls ?? [];
  return {
    row,
    title,
    explanation: explanation === null ? null : clipText(explanation, Math.min(bounds.textLength, MAX_EXPLANATION)),
    scores,
    metrics: { ...record.metrics, ...facts.givenMetrics },
    failureMessage: record.failure === null ? null : clipText(record.failure.message, bounds.textLength),
    logs: record.logs.slice(0, MAX_LOGS).map((line) => clipText(line, MAX_LOG_LENGTH)),
    unclaimedAnswers: record.unclaimedAnswers,
    adapterSha256,
    policy,
    startedAt: own === undefined ? null : new Date(own.startedAt).toISOString(),
    seconds: row.seconds,
    turns: viewTurns(playedCalls(record, times), bounds),
    hosted: hosted.slice(0, bounds.calls).map((call) => viewHosted(call, bounds.textLength)),
    given: viewGiven(givenRows, record.attempt),
    leftOut: describeLeftOut(record, bounds),
    neighbours,
  };
}

function describeLeftOut({ calls, hostedCalls = [] }: AttemptRecord, bounds: AttemptBounds): string | null {
  const more = Math.max(0, calls.length - bounds.calls) + Math.max(0, hostedCalls.length - bounds.calls);
  return more > 0 ? `${more} more calls` : null;
}

export function viewTurns(calls: readonly PlayedCall[], bounds: AttemptBounds): TurnView[] {
  const shown = calls.slice(0, bounds.calls);
  const origins = findOrigins(shown.map(({ call }) => call));
  return shown.map((played, turn) => viewTurn(played, origins[turn]!, bounds));
}

function viewTurn({ call, index, time }: PlayedCall, origin: TurnOrigin, { textLength }: AttemptBounds): TurnView {
  const { messages } = call.request;
  return {
    call: index,
    role: call.role ?? null,
    label: call.label,
    fresh: origin.fresh,
    forkOf: origin.forkOf,
    shared: origin.shared,
    messages: origin.shown.map((message) => viewMessage(messages[message]!, textLength)),
    answer: viewMessage(call.message, textLength),
    finishReason: call.finishReason,
    reward: call.reward ?? null,
    promptTokens: call.promptTokenIds.length,
    sampledTokens: call.tokenIds.length,
    adapterSha256: call.adapterSha256,
    startedAt: time === null ? null : new Date(time[0]).toISOString(),
    seconds: time === null ? null : (time[1] - time[0]) / 1000,
  };
}

export function viewHosted(call: HostedCallRecord, textLength: number): HostedCallView {
  const { model, role = null, request, choices, refusal, promptTokens, completionTokens, usd } = call;
  return {
    model,
    role,
    messages: request.messages.map((message) => viewMessage(message, textLength)),
    answers: choices.map(({ message }) => viewMessage(message, textLength)),
    refusal: refusal === null ? null : clipText(refusal, textLength),
    promptTokens,
    completionTokens,
    usd,
  };
}

/** Rewards with giver, time and reason, oldest first. */
function viewGiven(givenRows: readonly GivenRow[], attempt: number): GivenRewardView[] {
  return givenRows.flatMap((given) => {
    if (given.kind !== 'reward' || given.attempt !== attempt) return [];
    const { reward, by, note, at, metrics } = given;
    return [{ reward, by, note, at, ...(metrics !== undefined && { metrics }) }];
  });
}
