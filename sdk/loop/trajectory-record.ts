/** Trajectories as the store keeps them, and back: choices as the indices of their calls. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { isReward } from '../../core/rules/given-values.ts';
import {
  wasCut,
  type AttemptRecord,
  type CallRecord,
  type ChatMessage,
  type HistoryRecord,
  type RoleTrajectoryRecord,
} from '../../store/records/groups/trajectories.ts';
import { AttemptLog } from '../../play/attempt-log.ts';
import { CHOICE_TAG } from '../../play/recorder/answer.ts';
import { nameChoices } from '../../play/recorder/turns.ts';
import { metricsOf, metricsOfRole, withRewards } from './attempt-trajectories.ts';
import {
  callOfChoice,
  isChoice,
  Trajectory,
  type Choice,
  type History,
  type Message,
  type Origin,
  type Tools,
} from './trajectory.ts';

/** The trained calls of an attempt are those whose choices are in its histories, each of them once: a role's in the role's own. */
export function describeTrajectories(record: AttemptRecord, trajectories: readonly Trajectory[]): AttemptRecord {
  const names = nameChoices(record.calls);
  const callOf = (item: Message | Choice, role: string | null): number => {
    const name = isChoice(item) ? callOfChoice(item) : null;
    const call = name === null ? -1 : names.indexOf(name);
    // Context, where another role sampled it.
    return call >= 0 && (record.calls[call]!.role ?? null) === role ? call : -1;
  };
  const histories = trajectories.flatMap((trajectory) =>
    historiesOf(trajectory).map((history) => ({ history, role: trajectory.role })),
  );
  const found = histories.flatMap(({ history, role }) => history.messagesAndChoices.map((item) => callOf(item, role)));
  const used = [...new Set(found.filter((index) => index >= 0))].toSorted((one, other) => one - other);
  const [history, ...additionalHistories] = histories.map(({ history: { messagesAndChoices, tools }, role }) => ({
    messages: messagesAndChoices.map((item) => describeItem(item, used.indexOf(callOf(item, role)))),
    tools,
  }));
  const calls = used.map((index) => record.calls[index]!);
  const plain = trajectories.find(({ role }) => role === null) ?? null;
  const counted = plain === null ? record.metrics : {};
  const described = { ...record, metrics: { ...counted, ...metricsOf(trajectories) } };
  return {
    ...withRewards(described, trajectories),
    logs: trajectories.flatMap(({ logs }) => boundLogs(logs)),
    // One that outgrew the model was cut in no call.
    truncated: calls.some(wasCut) || (record.truncated && !record.calls.some(wasCut)),
    calls,
    trajectory: {
      history: history!,
      additionalHistories,
      metadata: plain?.metadata ?? {},
      explanation: plain?.explanation ?? null,
      otherCalls: record.calls.filter((_, index) => !used.includes(index)),
      ...(plain !== null && plain.turnRewards.length > 0 ? { outcome: plain.reward } : {}),
      ...(plain === null ? { roles: describeRoles(trajectories) } : {}),
    },
  };
}

function describeRoles(trajectories: readonly Trajectory[]): Record<string, RoleTrajectoryRecord> {
  const roles = trajectories.map((trajectory) => {
    const { role, metadata, explanation, logs } = trajectory;
    const own = { histories: historiesOf(trajectory).length, logs: boundLogs(logs).length };
    return [role!, { ...own, metadata, explanation }] as const;
  });
  return Object.fromEntries(roles);
}

const historiesOf = (trajectory: Trajectory): History[] => [trajectory, ...trajectory.additionalHistories];

/** The order in which the agent asked, of those calls that were kept. */
export function keepOrder(order: readonly number[], before: AttemptRecord, after: AttemptRecord): number[] {
  const kept = new Map(after.calls.map((call, index) => [call, index]));
  return order.flatMap((index) => kept.get(before.calls[index]!) ?? []);
}

/** Trajectories as the script gets them: one, or one for each role that was kept. */
export function readTrajectories(record: AttemptRecord, origin: Origin): Trajectory[] {
  const { calls, trajectory } = record;
  const { history, additionalHistories = [], roles } = trajectory ?? {};
  const names = nameChoices(calls);
  const recorded = [history ?? { messages: [], tools: null }, ...additionalHistories];
  const histories = recorded.map((kept) => readHistory(kept, calls, names));
  if (roles !== undefined) return readRoles(record, roles, { histories, origin });
  const turnRewards = calls.flatMap((call, index) =>
    call.reward === undefined ? [] : [{ choice: readChoice(call, names[index]!), reward: call.reward }],
  );
  const { metadata = {}, explanation = null, outcome } = trajectory ?? {};
  return [
    new Trajectory({
      ...histories[0]!,
      additionalHistories: histories.slice(1),
      reward: outcome ?? record.reward ?? Number.NaN,
      turnRewards,
      metrics: { ...record.metrics },
      metadata: { ...metadata },
      logs: [...record.logs],
      explanation,
      origin,
    }),
  ];
}

function readRoles(
  { roleRewards = {}, metrics, logs }: AttemptRecord,
  roles: Readonly<Record<string, RoleTrajectoryRecord>>,
  { histories, origin }: { histories: readonly History[]; origin: Origin },
): Trajectory[] {
  let [history, line] = [0, 0];
  return Object.entries(roles).map(([role, own]) => {
    const [first, ...additionalHistories] = histories.slice(history, (history += own.histories));
    return new Trajectory({
      ...first!,
      additionalHistories,
      reward: roleRewards[role] ?? Number.NaN,
      metrics: metricsOfRole(metrics, role),
      metadata: { ...own.metadata },
      logs: logs.slice(line, (line += own.logs)),
      explanation: own.explanation,
      origin: { ...origin, role },
    });
  });
}

/** Rewards by the names of the choices; those of one choice add up. Throws if a choice is not in the trajectory. */
export function rewardsOfTurns(trajectory: Trajectory): Map<string, number> {
  if (trajectory.role !== null && trajectory.turnRewards.length > 0) throw turnsOfRole(trajectory.role);
  const histories = [trajectory, ...trajectory.additionalHistories];
  const items = histories.flatMap(({ messagesAndChoices }) => messagesAndChoices);
  const known = new Set(items.flatMap((item) => (isChoice(item) ? (callOfChoice(item) ?? []) : [])));
  const rewards = new Map<string, number>();
  for (const { choice, reward } of trajectory.turnRewards) {
    const name = callOfChoice(choice);
    if (name === null || !known.has(name) || !isReward(reward)) throw badTurnReward(reward);
    rewards.set(name, (rewards.get(name) ?? 0) + reward);
  }
  return rewards;
}

function turnsOfRole(role: string): TemperError {
  const rule = `turnRewards have no effect for a model with roles, got some for the role ${role}`;
  return badConfig(`${rule}; add them to the reward of its trajectory, and leave turnRewards out`);
}

function badTurnReward(reward: number): TemperError {
  const rule =
    'turnRewards must be finite numbers of at most 1000000 for choices that the model sampled and that are part of a history';
  return badConfig(`${rule}, got ${String(reward)}; pass { choice: completion.choices[0], reward }`);
}

/** They stay with the trajectory for ever. */
function boundLogs(lines: readonly string[]): string[] {
  const log = new AttemptLog();
  for (const line of lines) log.add([line]);
  return log.lines();
}

/** A choice that nobody recorded is another model's, or a person's: context, as any message. */
function describeItem(item: Message | Choice, call: number): HistoryRecord['messages'][number] {
  if (!isChoice(item)) return item as ChatMessage;
  return call >= 0 ? { call } : { ...item.message };
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
