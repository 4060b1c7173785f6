/** Trajectories as the store keeps them, and back: choices as the indices of their calls. */
import type { AttemptRecord, CallRecord, ChatMessage, HistoryRecord } from '../../store/trajectories.ts';
import { AttemptLog } from '../attempt-log.ts';
import { CHOICE_TAG } from '../recorder/answer.ts';
import { callName } from '../recorder/recorder.ts';
import {
  callOfChoice,
  isChoice,
  Trajectory,
  type Choice,
  type History,
  type Origin,
  type Tools,
} from './trajectory.ts';

/** What of an attempt is trained are the calls whose choices stand in its histories; each of them once. */
export function describeTrajectory(record: AttemptRecord, trajectory: Trajectory): AttemptRecord {
  const names = nameCalls(record.calls);
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
    reward: trajectory.reward,
    metrics,
    logs: boundLogs(trajectory.logs),
    truncated: calls.some(({ finishReason }) => finishReason === 'length'),
    calls,
    trajectory: {
      history: describe(trajectory),
      additionalHistories: additionalHistories.map(describe),
      metadata,
      explanation,
      otherCalls: record.calls.filter((_, index) => !used.has(index)),
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
  const names = nameCalls(calls);
  const read = (kept: HistoryRecord): History => readHistory(kept, calls, names);
  return new Trajectory({
    ...read(history ?? { messages: [], tools: null }),
    additionalHistories: additionalHistories.map(read),
    reward: record.reward ?? Number.NaN,
    metrics: { ...metrics },
    metadata: { ...metadata },
    logs: [...logs],
    explanation,
    origin,
  });
}

/** They stay with the trajectory for ever. */
function boundLogs(lines: readonly string[]): string[] {
  const log = new AttemptLog();
  for (const line of lines) log.add([line]);
  return log.lines();
}

/** As choices name them: the choices of one call stand in their own order. */
function nameCalls(calls: readonly CallRecord[]): string[] {
  const counts = new Map<string, number>();
  return calls.map((call) => {
    const name = callName(call);
    const index = counts.get(name) ?? 0;
    counts.set(name, index + 1);
    return `${name}/${index}`;
  });
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
