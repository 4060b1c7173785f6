/** Counts the training rows that the calls of an attempt would become, as the trainer does (gpu-worker: training/rows.py). */
import { canonicalJson } from '../../core/text/hashes.ts';
import type { CallRecord } from '../../store/records/groups/trajectories.ts';

export interface RowCounts {
  /** Calls that extend the tokens of a row exactly. */
  readonly continued: number;
  /** Calls that continue a conversation but not its tokens: its history was rewritten. */
  readonly rewritten: number;
}

/** `calls` in the order of the record, by the length of their prompts. Calls without token ids are not counted. */
export function countRows(calls: readonly CallRecord[]): RowCounts {
  const rows: number[][] = [];
  let [continued, rewritten] = [0, 0];
  for (const [index, call] of calls.entries()) {
    if (call.tokenIds.length === 0) continue;
    const row = longestStart(rows, call.promptTokenIds);
    if (row !== null) continued += 1;
    else if (rows.length > 0 && carriesOn(call, calls.slice(0, index))) rewritten += 1;
    const played = [...call.promptTokenIds, ...call.tokenIds];
    if (row === null) rows.push(played);
    else rows[rows.indexOf(row)] = played;
  }
  return { continued, rewritten };
}

/**
 * Counts turns that `tool_choice` opened with a call and that later appear with other tokens: the chat template opens such
 * a turn differently from how it writes it in the history (Qwen 3: with empty thoughts).
 */
export function countReopened(calls: readonly CallRecord[]): number {
  const opened = calls.filter(
    ({ request: { tool_choice: choice }, tokenIds }) => isForced(choice) && tokenIds.length > 0,
  );
  return opened.filter((turn) =>
    calls.some(
      (call) => isAfter(call, turn) && turn.promptTokenIds.some((id, index) => call.promptTokenIds[index] !== id),
    ),
  ).length;
}

function isForced(choice: unknown): boolean {
  return choice === 'required' || (typeof choice === 'object' && choice !== null);
}

function isAfter({ request: { messages }, tokenIds }: CallRecord, { request: earlier }: CallRecord): boolean {
  const begin = messages.slice(0, earlier.messages.length);
  return (
    tokenIds.length > 0 && messages.length > begin.length && canonicalJson(begin) === canonicalJson(earlier.messages)
  );
}

/** The longest row that the prompt begins with. */
function longestStart(rows: readonly number[][], prompt: readonly number[]): number[] | null {
  const matching = rows.filter((row) => row.length <= prompt.length && row.every((id, index) => prompt[index] === id));
  return matching.toSorted((left, right) => right.length - left.length)[0] ?? null;
}

/** True if it forks an earlier call by the trainer's rule, or if its history has an answer. */
function carriesOn({ request: { messages } }: CallRecord, before: readonly CallRecord[]): boolean {
  if (messages.some(({ role }) => role === 'assistant')) return true;
  return before.some(({ request }) => {
    const begin = messages.slice(0, request.messages.length);
    return canonicalJson(begin) === canonicalJson(request.messages);
  });
}
