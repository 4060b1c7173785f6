/**
 * Which turn of its attempt each call is, and what turns earned by themselves. A call that is asked while another one
 * waits for its answer ends the counting: from there on all is one turn, for which of them comes first only time tells.
 */
import { TemperError } from '../../core/failures.ts';
import type { AttemptRecord, CallRecord } from '../../store/trajectories.ts';
import type { Completion } from './answer.ts';

/** Says that a turn earned something by itself: what the model answered, and how much. */
export type RewardTurn = (turn: { choices: readonly object[] } | object, reward: number) => void;

/** What an agent copies of a choice keeps it; JSON does not show it. */
const CHOICE_NAME = Symbol('the call that a choice answers');

export class Turns {
  /** By the name of the call. */
  readonly numbers = new Map<string, number>();
  /** By the name of the choice: its call's, and its index. */
  readonly rewards = new Map<string, number>();
  private count = 0;
  private isParallel = false;

  /** `others`: how many calls wait for their answers. */
  begin(call: string, others: number): void {
    this.isParallel ||= others > 0;
    if (!this.isParallel) this.count += 1;
    this.numbers.set(call, this.count - 1);
  }

  /** What `reward` knows a turn by. */
  mark(completion: Completion, call: string): Completion {
    const choices = completion.choices.map((choice, index) => ({ ...choice, [CHOICE_NAME]: `${call}/${index}` }));
    return { ...completion, choices };
  }

  /** Rewards of one turn add up. */
  reward(turn: unknown, reward: unknown): void {
    const name = nameOf(turn);
    if (name === null) throw refusal('must be given a completion of one choice, or a choice, as openai answered it');
    if (typeof reward !== 'number' || !Number.isFinite(reward))
      throw refusal(`must be given a finite reward, got ${String(reward)}`);
    this.rewards.set(name, (this.rewards.get(name) ?? 0) + reward);
  }

  /** A turn's share of the attempt's reward, added to what the attempt was worth besides. */
  addTo(outcome: number): number {
    return [...this.rewards.values()].reduce((sum, reward) => sum + reward, outcome);
  }
}

/** As choices are named: the choices of one call stand in their own order. */
export function nameChoices(calls: readonly Pick<CallRecord, 'key' | 'occurrence'>[]): string[] {
  const counts = new Map<string, number>();
  return calls.map(({ key, occurrence }) => {
    const name = `${key}/${occurrence}`;
    const index = counts.get(name) ?? 0;
    counts.set(name, index + 1);
    return `${name}/${index}`;
  });
}

export interface PlayedTurns {
  numbers: ReadonlyMap<string, number>;
  rewards: ReadonlyMap<string, number>;
}

/** Where any turn of a group has a reward, all of its calls say which turn they are; elsewhere nothing is written. */
export function withTurns(records: AttemptRecord[], turnsOf: (attempt: number) => PlayedTurns | null): AttemptRecord[] {
  const played = records.map((record) => ({
    record,
    turns: record.status === 'ok' ? turnsOf(record.attempt) : null,
  }));
  if (!played.some(({ turns }) => turns !== null && turns.rewards.size > 0)) return records;
  return played.map(({ record, turns }) => (turns === null ? record : { ...record, calls: number(record, turns) }));
}

function number({ calls }: AttemptRecord, { numbers, rewards }: PlayedTurns): CallRecord[] {
  const names = nameChoices(calls);
  return calls.map((call, index) => {
    const reward = rewards.get(names[index]!);
    const turn = numbers.get(`${call.key}/${call.occurrence}`) ?? 0;
    return { ...call, turn, ...(reward === undefined ? {} : { reward }) };
  });
}

function nameOf(turn: unknown): string | null {
  if (typeof turn !== 'object' || turn === null) return null;
  const { choices } = turn as { choices?: unknown };
  if (!Array.isArray(choices)) return (turn as { [CHOICE_NAME]?: string })[CHOICE_NAME] ?? null;
  return choices.length === 1 ? nameOf(choices[0]) : null;
}

function refusal(rule: string): TemperError {
  return new TemperError('BadConfig', `rewardTurn ${rule}; pass on what openai.chat.completions.create returned`);
}
