/** How the calls of an attempt would become training rows, counted as the trainer does (gpu-worker: training/rows.py). */
import { canonicalJson } from '../../core/hashes.ts';
import type { CallRecord } from '../../store/records/trajectories.ts';

export interface RowCounts {
  /** Calls that extend the tokens of a row exactly. */
  readonly continued: number;
  /** Calls that carry a conversation on, but whose tokens do not: its history was rewritten. */
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

/** The longest row that the prompt begins with. */
function longestStart(rows: readonly number[][], prompt: readonly number[]): number[] | null {
  const matching = rows.filter((row) => row.length <= prompt.length && row.every((id, index) => prompt[index] === id));
  return matching.toSorted((left, right) => right.length - left.length)[0] ?? null;
}

/** A fork by the trainer's rule; or an answer stands in its history, whatever became of the messages around it. */
function carriesOn({ request: { messages } }: CallRecord, before: readonly CallRecord[]): boolean {
  if (messages.some(({ role }) => role === 'assistant')) return true;
  return before.some(({ request }) => {
    const begin = messages.slice(0, request.messages.length);
    return canonicalJson(begin) === canonicalJson(request.messages);
  });
}
