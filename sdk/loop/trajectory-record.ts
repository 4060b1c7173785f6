/** Trajectories as the store keeps them, and back: choices as the indices of their calls. */
import { TemperError } from '../../core/failures.ts';
import {
  wasCut,
  type AttemptRecord,
  type CallRecord,
  type ChatMessage,
  type HistoryRecord,
} from '../../store/records/trajectories.ts';
import { AttemptLog } from '../../play/attempt-log.ts';
import { CHOICE_TAG } from '../../play/recorder/answer.ts';
import { nameChoices } from '../../play/recorder/turns.ts';
import {
  callOfChoice,
  isChoice,
  Trajectory,
  type Choice,
  type History,
  type Origin,
  type Tools,
} from './trajectory.ts';

/** The trained calls of an attempt are those whose choices are in its histories, each of them once. */
export function describeTrajectory(record: AttemptRecord, trajectory: Trajectory): AttemptRecord {
  const names = nameChoices(record.calls);
  const found = [trajectory, ...trajectory.additionalHistories].flatMap(({ messagesAndChoices }) =>
    messagesAndChoices.flatMap((item) => (isChoice(item) ? [names.indexOf(callOfChoice(item) ?? '')] : [])),
  );
  const used = new Set(found.filter((index) => index >= 0));
  const calls = record.calls.filter((_, index) => used.has(index));
  const kept = names.filter((_, index) => used.has(index));
  const describe = (history: History) => describeHistory(history, kept);
  const { metadata, additionalHistories, explanation, metrics } = trajectory;
  return {
    ...record,
    reward: trajectory.totalReward,
    metrics,
    logs: boundLogs(trajectory.logs),
    // One that outgrew the model was cut in no call.
    truncated: calls.some(wasCut) || (record.truncated && !record.calls.some(wasCut)),
    calls,
    trajectory: {
      history: describe(trajectory),
      additionalHistories: additionalHistories.map(describe),
      metadata,
      explanation,
      otherCalls: record.calls.filter((_, index) => !used.has(index)),
      ...(trajectory.turnRewards.length > 0 ? { outcome: trajectory.reward } : {}),
    },
  };
}

/** The order in which the agent asked, of those calls that were kept. */
export function keepOrder(order: readonly number[], before: AttemptRecord, after: AttemptRecord): number[] {
  const kept = new Map(after.calls.map((call, index) => [call, index]));
  return order.flatMap((index) => kept.get(before.calls[index]!) ?? []);
}

export function readTrajectory(record: AttemptRecord, origin: Origin): Trajectory {
  const { calls, metrics, logs, trajectory } = record;
  const { history, additionalHistories = [], metadata = {}, explanation = null } = trajectory ?? {};
  const names = nameChoices(calls);
  const read = (kept: HistoryRecord): History => readHistory(kept, calls, names);
  return new Trajectory({
    ...read(history ?? { messages: [], tools: null }),
    additionalHistories: additionalHistories.map(read),
    reward: trajectory?.outcome ?? record.reward ?? Number.NaN,
    turnRewards: calls.flatMap((call, index) =>
      call.reward === undefined ? [] : [{ choice: readChoice(call, names[index]!), reward: call.reward }],
    ),
    metrics: { ...metrics },
    metadata: { ...metadata },
    logs: [...logs],
    explanation,
    origin,
  });
}

/** Rewards by the names of the choices; those of one choice add up. Throws if a choice is not in the trajectory. */
export function rewardsOfTurns(trajectory: Trajectory): Map<string, number> {
  const histories = [trajectory, ...trajectory.additionalHistories];
  const items = histories.flatMap(({ messagesAndChoices }) => messagesAndChoices);
  const known = new Set(items.flatMap((item) => (isChoice(item) ? (callOfChoice(item) ?? []) : [])));
  const rewards = new Map<string, number>();
  for (const { choice, reward } of trajectory.turnRewards) {
    const name = callOfChoice(choice);
    if (name === null || !known.has(name) || !Number.isFinite(reward)) throw badTurnReward(reward);
    rewards.set(name, (rewards.get(name) ?? 0) + reward);
  }
  return rewards;
}

function badTurnReward(reward: number): TemperError {
  const rule = 'turnRewards must be finite numbers for choices that the model sampled and that are part of a history';
  return new TemperError('BadConfig', `${rule}, got ${String(reward)}; pass { choice: completion.choices[0], reward }`);
}

/** They stay with the trajectory for ever. */
function boundLogs(lines: readonly string[]): string[] {
  const log = new AttemptLog();
  for (const line of lines) log.add([line]);
  return log.lines();
}

/** A choice that nobody recorded is another model's, or a person's: context, as any message. */
function describeHistory({ messagesAndChoices, tools }: History, names: readonly string[]): HistoryRecord {
  const messages = messagesAndChoices.map((item): HistoryRecord['messages'][number] => {
    if (!isChoice(item)) return item as ChatMessage;
    const call = names.indexOf(callOfChoice(item) ?? '');
    return call >= 0 ? { call } : { ...item.message };
  });
  return { messages, tools };
}

function readHistory({ messages, tools }: HistoryRecord, calls: readonly CallRecord[], names: string[]): History {
  const messagesAndChoices = messages.map((item) => {
    if (!isCall(item)) return item as History['messagesAndChoices'][number];
    return readChoice(calls[item.call]!, names[item.call]!);
  });
  return { messagesAndChoices, tools: tools as Tools | null };
}

function isCall(item: HistoryRecord['messages'][number]): item is { call: number } {
  return 'call' in item && !('role' in item);
}

function readChoice({ message, finishReason }: CallRecord, name: string): Choice {
  const index = Number(name.slice(name.lastIndexOf('/') + 1));
  return { index, finish_reason: finishReason, message, logprobs: null, [CHOICE_TAG]: name } as unknown as Choice;
}
