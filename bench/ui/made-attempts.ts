/** Attempts that were never played, for stores that are large or strange: an agent with tools answers questions. */
import { sha256Hex } from '../../core/text/hashes.ts';
import type { AttemptRecord, CallRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';

/** Rewards that teach nothing, or the wrong thing. */
export const BUGS = ['none', 'constant', 'length', 'component'] as const;
export type Bug = (typeof BUGS)[number];

export interface AttemptShape {
  readonly turns: number;
  /** Words of each tool's answer. */
  readonly words: number;
  readonly bug: Bug;
}

export interface AttemptSeat {
  readonly seed: number;
  readonly attempt: number;
  /** From 0 to 1: how much the policy has learned. */
  readonly skill: number;
  readonly scenarioId: string;
  readonly adapterSha256: string;
}

export interface MadeAttempt {
  readonly record: AttemptRecord;
  readonly named: Record<string, number>;
}

const WORDS =
  'river mountain invoice customer refund order shipped delayed tracking budget meeting approve search result page total amount number date name street city country weather report table column value error retry index query answer because therefore however maybe certainly likely about between after before during under over'.split(
    ' ',
  );
const TOOLS = ['search', 'open', 'calculate', 'submit'] as const;
const START = { user: 258, assistant: 259, tool: 260 } as const;
const END = 261;

/** Numbers from 0 to below 1, the same for a seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function makeAttempt(seat: AttemptSeat, shape: AttemptShape): MadeAttempt {
  const random = seededRandom(seat.seed);
  const isFailed = random() < 0.02;
  const isTruncated = !isFailed && random() < 0.03;
  const isCorrect = random() < 0.15 + 0.75 * seat.skill;
  const turns = isFailed ? Math.max(1, shape.turns >> 1) : shape.turns;
  const words = shape.bug === 'length' ? Math.round(shape.words * (1 + 3 * seat.skill)) : shape.words;
  const calls = playTurns(seat, { turns, words, isCorrect, isTruncated }, random);
  const length = calls.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  const named = rewardsOf(shape.bug, { isCorrect, length, random });
  const reward = Object.values(named).reduce((sum, value) => sum + value, 0);
  return { record: toRecord(seat, { isFailed, isTruncated, isCorrect, calls, reward, turns }), named };
}

interface Played {
  readonly isFailed: boolean;
  readonly isTruncated: boolean;
  readonly isCorrect: boolean;
  readonly calls: CallRecord[];
  readonly reward: number;
  readonly turns: number;
}

function toRecord({ attempt, scenarioId }: AttemptSeat, played: Played): AttemptRecord {
  const { isFailed, isTruncated, isCorrect, calls, reward, turns } = played;
  return {
    attempt,
    status: isFailed ? 'failed' : 'ok',
    failure: isFailed ? { type: 'AgentFailed', message: `TypeError: no answer for ${scenarioId}` } : null,
    reward: isFailed ? null : reward,
    metrics: isFailed ? {} : { correct: isCorrect, searches: Math.ceil(turns / 2) },
    logs: isCorrect ? [] : ['the answer was compared and found wrong'],
    truncated: isTruncated,
    unclaimedAnswers: 0,
    calls,
  };
}

function rewardsOf(
  bug: Bug,
  { isCorrect, length, random }: { isCorrect: boolean; length: number; random: () => number },
): Record<string, number> {
  const correct = isCorrect ? 1 : 0;
  if (bug === 'constant') return { answer: 0, format: 0.5 };
  if (bug === 'length') return { answer: 0, format: length / 1000 };
  if (bug === 'component') return { answer: correct * 0.1, format: random() < 0.5 ? 1 : 0 };
  return { answer: correct, format: random() < 0.8 ? 0.1 : 0 };
}

function playTurns(
  { attempt, scenarioId, adapterSha256, seed }: AttemptSeat,
  plan: { turns: number; words: number; isCorrect: boolean; isTruncated: boolean },
  random: () => number,
): CallRecord[] {
  const history: ChatMessage[] = [
    { role: 'system', content: 'You answer questions with tools. Submit one answer.' },
    { role: 'user', content: `Question ${scenarioId}: what is the ${sentence(seededRandom(hash(scenarioId)), 12)}?` },
  ];
  const ids = history.flatMap((message) => encode('user', String(message.content)));
  return Array.from({ length: plan.turns }, (_, turn): CallRecord => {
    const isLast = turn === plan.turns - 1;
    const message = answer({ turn, isLast, ...plan }, random);
    const promptTokenIds = [...ids, START.assistant];
    const isCut = isLast && plan.isTruncated;
    const tokenIds = [...Buffer.from(spoken(message)), ...(isCut ? [] : [END])];
    const call: CallRecord = {
      key: sha256Hex(`${seed} ${attempt} ${turn}`),
      occurrence: 0,
      label: null,
      request: { messages: [...history], temperature: 1, max_tokens: 512 },
      message,
      finishReason: isCut ? 'length' : isLast ? 'stop' : 'tool_calls',
      promptTokenIds,
      tokenIds,
      logprobs: tokenIds.map(() => Number((-0.02 - 2 * random() ** 4).toFixed(9))),
      adapterSha256,
    };
    const said = { role: 'tool', tool_call_id: `call_${turn}`, content: sentence(random, plan.words) };
    history.push(message, said);
    ids.push(START.assistant, ...tokenIds, ...encode('tool', said.content));
    return call;
  });
}

function answer(
  { turn, isLast, isCorrect }: { turn: number; isLast: boolean; isCorrect: boolean },
  random: () => number,
): ChatMessage {
  if (isLast)
    return { role: 'assistant', content: `The answer is ${isCorrect ? 'right' : 'wrong'}: ${sentence(random, 8)}.` };
  const name = TOOLS[Math.floor(random() * TOOLS.length)]!;
  const called = { name, arguments: JSON.stringify({ query: sentence(random, 4) }) };
  return {
    role: 'assistant',
    content: sentence(random, 8),
    tool_calls: [{ id: `call_${turn}`, type: 'function', function: called }],
  };
}

function spoken({ content, tool_calls: calls }: ChatMessage): string {
  return `${String(content)}${calls === undefined ? '' : JSON.stringify(calls)}`;
}

function encode(role: keyof typeof START, text: string): number[] {
  return [START[role], ...Buffer.from(text), END];
}

function sentence(random: () => number, words: number): string {
  return Array.from({ length: words }, () => WORDS[Math.floor(random() * WORDS.length)]!).join(' ');
}

function hash(text: string): number {
  return Number.parseInt(sha256Hex(text).slice(0, 8), 16);
}
