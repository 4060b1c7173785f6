/** Tokens of an attempt as they were recorded: the ids, their text by the base model's vocabulary, what the trainer saw. */
import type { GroupPlace } from '../../store/layout.ts';
import { readTokenTrace, type TokenColumns } from '../../store/records/groups/token-trace.ts';
import type { CallRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { TokensView, TurnTokens } from '../api/attempt-views.ts';
import type { ViewContext, Vocabulary } from '../context/context.ts';
import { indexOf } from './attempt.ts';
import { findOrigins, type TurnOrigin } from './histories.ts';
import { parseAttemptOf, type PlayPlace } from './place.ts';
import { playedCalls, requirePlayed, type PlayedCall } from './read-played.ts';
import { findUse, readRunInStore, type RunInStore } from './step-facts.ts';

/** Tokens of all turns together; at least one turn is shown. */
const MAX_TOKENS = 200_000;
/** Tokens before a part of a text that its first character may have begun in: UTF-8 takes at most four bytes. */
const WARM_UP = 4;

export async function viewTokens(context: ViewContext, run: string, id: string): Promise<TokensView> {
  const { store } = context;
  const { place, attempt } = parseAttemptOf(run, id);
  const facts = await readRunInStore(context, run);
  const played = await requirePlayed(store, place, attempt);
  const record = played.rollouts.attempts[indexOf(played, attempt, run, id)]!;
  const [vocabulary, columnsOf] = await Promise.all([
    context.readVocabulary(run),
    readColumns(store, facts, place, attempt),
  ]);
  const calls = playedCalls(record, played.times);
  const origins = findOrigins(calls.map(({ call }) => call));
  const turns: TurnTokens[] = [];
  let room = MAX_TOKENS;
  for (const [turn, { call, index }] of calls.entries()) {
    const shared = sharedTokens(calls, turn, origins[turn]!, vocabulary);
    room -= call.promptTokenIds.length - shared + call.tokenIds.length;
    if (room < 0 && turn > 0) break;
    turns.push(viewTurnTokens({ call, index, shared, vocabulary, columns: columnsOf(index) }));
  }
  return { hasText: vocabulary !== null, turns, leftOut: calls.length - turns.length };
}

type ReadColumns = (call: number) => TokenColumns | null;

/** Columns of the step that trained the group; none for an evaluation, and where the step did not write any. */
async function readColumns(store: Store, facts: RunInStore, place: PlayPlace, attempt: number): Promise<ReadColumns> {
  const use = place.kind === 'group' ? await findUse(store, facts, place) : null;
  if (place.kind !== 'group' || use?.use !== 'trained') return () => null;
  const trace = await readTokenTrace(store, use.decidedBy);
  return (call) => trace?.columnsOf(refOf(place, use.decidedBy), attempt, call) ?? null;
}

/** A group that the step dealt itself is known by its number alone. */
function refOf(dealt: GroupPlace, decidedBy: { branch: number; step: number }) {
  const { group, step, branch } = dealt;
  return {
    group,
    ...(step !== decidedBy.step && { step }),
    ...(branch !== decidedBy.branch && { branch }),
  };
}

/**
 * Length of the prompt that the turn before, or another one that it grew from, has shown. Where it goes another way within
 * a message, the message is shown from its beginning, which a control token marks.
 */
function sharedTokens(
  calls: readonly PlayedCall[],
  turn: number,
  { shared, forkOf }: TurnOrigin,
  vocabulary: Vocabulary | null,
): number {
  if (shared === 0) return 0;
  const { promptTokenIds: prompt } = calls[turn]!.call;
  const candidates = [turn - 1, ...(forkOf === null ? [] : [forkOf])].map((earlier) => calls[earlier]!.call);
  const lengths = candidates.map((earlier) => {
    const common = commonTokens(earlier, prompt);
    const isWhole = common === earlier.promptTokenIds.length + earlier.tokenIds.length || common === prompt.length;
    return isWhole || vocabulary === null ? common : startOfMessage(prompt, common, vocabulary);
  });
  return Math.max(0, ...lengths);
}

function startOfMessage(prompt: readonly number[], from: number, { isControl }: Vocabulary): number {
  return prompt.findLastIndex((id, index) => index < from && isControl(id));
}

function commonTokens({ promptTokenIds, tokenIds }: CallRecord, prompt: readonly number[]): number {
  const idAt = (index: number) => promptTokenIds[index] ?? tokenIds[index - promptTokenIds.length];
  const shared = prompt.findIndex((id, index) => id !== idAt(index));
  return shared === -1 ? prompt.length : shared;
}

interface Shown {
  readonly call: CallRecord;
  readonly index: number;
  readonly shared: number;
  readonly vocabulary: Vocabulary | null;
  readonly columns: TokenColumns | null;
}

function viewTurnTokens({ call, index, shared, vocabulary, columns }: Shown): TurnTokens {
  const { promptTokenIds, tokenIds, logprobs } = call;
  const ids = [...promptTokenIds.slice(shared), ...tokenIds];
  const before = promptTokenIds.slice(Math.max(0, shared - WARM_UP), shared);
  return {
    call: index,
    ids,
    text: vocabulary === null ? ids.map(() => '') : decodePieces(vocabulary, ids, before),
    control: vocabulary === null ? [] : ids.flatMap((id, place) => (vocabulary.isControl(id) ? [place] : [])),
    sampledFrom: promptTokenIds.length - shared,
    shared,
    logprobs,
    ...viewColumns(columns, logprobs),
  };
}

type Columns = Pick<TurnTokens, 'trainerLogprobs' | 'entropies' | 'advantages' | 'mask'>;

function viewColumns(columns: TokenColumns | null, logprobs: readonly number[]): Columns {
  if (columns === null) return { trainerLogprobs: null, entropies: null, advantages: null, mask: null };
  const { logRatios, entropies, advantages, mask } = columns;
  return {
    trainerLogprobs: logprobs.map((logprob, index) => finite(logprob + logRatios[index]!)),
    entropies: Array.from(entropies, finite),
    advantages: Array.from(advantages),
    mask: Array.from(mask, (trained) => trained === 1),
  };
}

/** The trainer never computed the token. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/**
 * Text of each token. A character that takes several tokens is that of the last of them, and the ones before it have no
 * text of their own; bytes that are no UTF-8 are U+FFFD.
 */
export function decodePieces(vocabulary: Vocabulary, ids: readonly number[], before: readonly number[] = []): string[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (const id of before) decoder.decode(vocabulary.bytesOf(id), { stream: true });
  const text = ids.map((id) => decoder.decode(vocabulary.bytesOf(id), { stream: true }));
  const rest = decoder.decode();
  const last = text.pop();
  return last === undefined ? [] : [...text, last + rest];
}
