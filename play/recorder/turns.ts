/**
 * Which turn of its attempt each call is, and what turns earned by themselves. A call that is asked while another one
 * waits for its answer ends the counting: from there on all is one turn, for which of them comes first only time tells.
 * The journal keeps where that was: in a repetition, answers come at once and nothing waits.
 */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { inPlayOrder, type AttemptRecord, type CallRecord } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import type { CallFrame } from './answer.ts';
import { callId, callName } from './recorded-calls.ts';

/** Says that a turn earned something by itself: what the model answered, or the id of that, and how much. */
export type RewardTurn = (turn: { choices: readonly object[] } | object | string, reward: number) => void;

/** A symbol survives in an agent's copy of a choice, and JSON omits it. */
const CHOICE_NAME = Symbol('the call that a choice answers');

/** `chatcmpl-…`, `resp_…`, `msg_…`, and items of an answer: what follows is the call's own. */
const ANSWER_ID = /^[a-z]+[-_]([0-9a-f]{24}-\d+)/;

export class Turns {
  /** Turn numbers by the name of the call. */
  readonly numbers = new Map<string, number>();
  /** Rewards by the name of the choice: its call's, and its index. */
  readonly rewards = new Map<string, number>();
  /** Name and number of choices of a call, by the id that the agent saw. */
  readonly #answered = new Map<string, { call: string; choices: number }>();
  #count = 0;
  #overlap: number | null;
  readonly #recordOverlap: (turn: number) => void;

  /** `overlap`: the turn from which calls overlapped when the attempt was played before. */
  constructor(overlap: number | null, recordOverlap: (turn: number) => void) {
    this.#overlap = overlap;
    this.#recordOverlap = recordOverlap;
  }

  /** Every call waited for the one before: then the numbers are the order of play, and no timing is in them. */
  get isInTurn(): boolean {
    return this.#overlap === null;
  }

  /** `others`: how many calls wait for their answers. */
  begin(call: string, others: number): void {
    const last = Math.max(0, this.#count - 1);
    if (others > 0 && (this.#overlap === null || last < this.#overlap)) {
      this.#overlap = last;
      this.#recordOverlap(last);
    }
    const turn = Math.min(this.#count, this.#overlap ?? this.#count);
    this.numbers.set(call, turn);
    this.#count = turn + 1;
  }

  /** Marks an answer so that `reward` finds its turn. */
  mark(completion: Completion, frame: CallFrame): Completion {
    const [call, id] = [callName(frame), callId(frame)];
    const choices = completion.choices.map((choice, index) => ({ ...choice, [CHOICE_NAME]: `${call}/${index}` }));
    this.#answered.set(id, { call, choices: choices.length });
    return { ...completion, id: `chatcmpl-${id}`, choices };
  }

  /** Rewards of one turn add up. */
  reward(turn: unknown, reward: unknown): void {
    const name = this.#nameOf(turn);
    if (name === null) throw refusal('must be given a completion of one choice, a choice, or the id of an answer');
    if (!isReward(reward)) throw refusal(`must be given a reward, ${REWARD_RULE}, got ${String(reward)}`);
    this.rewards.set(name, (this.rewards.get(name) ?? 0) + reward);
  }

  #nameOf(turn: unknown): string | null {
    if (typeof turn === 'string') return this.#nameOfId(turn);
    if (typeof turn !== 'object' || turn === null) return null;
    const { choices, id } = turn as { choices?: unknown; id?: unknown };
    if (Array.isArray(choices) && choices.length > 1) return null;
    const [choice = turn] = (Array.isArray(choices) ? choices : []) as object[];
    const name = (choice as { [CHOICE_NAME]?: string } | null)?.[CHOICE_NAME];
    return name ?? (typeof id === 'string' ? this.#nameOfId(id) : null);
  }

  #nameOfId(id: string): string | null {
    const answered = this.#answered.get(ANSWER_ID.exec(id)?.[1] ?? '');
    return answered?.choices === 1 ? `${answered.call}/0` : null;
  }

  /** A turn's share of the attempt's reward, added to what the attempt was worth besides. */
  addTo(outcome: number): number {
    return [...this.rewards.values()].reduce((sum, reward) => sum + reward, outcome);
  }
}

/** Names of choices: those of one call are in their own order. */
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
  /** The numbers are the order of play, and somebody will want to know it: a judge, or `rewardGroup`. */
  showsOrder: boolean;
}

/**
 * Calls say which turn they are where any turn of their group has a reward, and where the order of play is to be shown
 * and is another one than that of the record; elsewhere nothing is written.
 */
export function withTurns(records: AttemptRecord[], turnsOf: (attempt: number) => PlayedTurns | null): AttemptRecord[] {
  const played = records.map((record) => ({
    record,
    turns: record.status === 'ok' ? turnsOf(record.attempt) : null,
  }));
  const hasRewards = played.some(({ turns }) => turns !== null && turns.rewards.size > 0);
  return played.map(({ record, turns }) => {
    if (turns === null || !(hasRewards || turns.showsOrder)) return record;
    const calls = number(record, turns);
    const isOther = inPlayOrder(calls).some((call, index) => call !== calls[index]);
    return hasRewards || isOther ? { ...record, calls } : record;
  });
}

function number({ calls }: AttemptRecord, { numbers, rewards }: PlayedTurns): CallRecord[] {
  const names = nameChoices(calls);
  return calls.map((call, index) => {
    const reward = rewards.get(names[index]!);
    const turn = numbers.get(`${call.key}/${call.occurrence}`) ?? 0;
    return { ...call, turn, ...(reward === undefined ? {} : { reward }) };
  });
}

function refusal(rule: string): TemperError {
  return badConfig(`rewardTurn ${rule}; pass on what the model's client returned, or its id`);
}
