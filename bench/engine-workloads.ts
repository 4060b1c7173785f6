/** Requests of `npm run bench -- engine`. All tokens are bytes of the pocket model's tokenizer. */

/** Tokens that come in, and how many are sampled after them. */
export type Turn = readonly [tokens: readonly number[], answer: number];
export type Conversation = readonly Turn[];

export interface Workload {
  readonly name: string;
  readonly conversations: readonly Conversation[];
  /** Whose speed counts; the others are only beside them. */
  readonly counted: number;
}

const ANSWER = 32;
const GROUP = 8;
const TURNS = 6;
const NEIGHBOUR_TOKENS = 1000;

/** Every number of every round is new, so that nothing is left from the round before. */
export function planWorkload(name: string, requests: number, round: number): Workload {
  const chance = createChance(round + 1);
  const tokens = (count: number): number[] => Array.from({ length: count }, () => Math.floor(chance() * 256));
  const each = (make: (index: number) => Conversation): Conversation[] =>
    Array.from({ length: requests }, (_, i) => make(i));
  const shared = (length: number): Conversation[] => {
    const prompts = Array.from({ length: Math.ceil(requests / GROUP) }, () => tokens(length));
    return each((index) => [[prompts[Math.floor(index / GROUP)]!, ANSWER]]);
  };
  const makers: Readonly<Record<string, () => Conversation[]>> = {
    uniform: () => each(() => [[tokens(32), ANSWER]]),
    ragged: () => each(() => [[tokens(8 + Math.floor(chance() * 120)), 4 + Math.floor(chance() * 60)]]),
    'shared-512': () => shared(512),
    'shared-2400': () => shared(2400),
    turns: () => each(() => Array.from({ length: TURNS }, (): Turn => [tokens(48), ANSWER])),
    neighbour: () => [...each(() => [[tokens(32), 4 * ANSWER]]), [[tokens(NEIGHBOUR_TOKENS), 4 * ANSWER]]],
    'no-neighbour': () => each(() => [[tokens(32), 4 * ANSWER]]),
  };
  return { name, conversations: makers[name]!(), counted: requests };
}

export const WORKLOADS = [
  'uniform',
  'ragged',
  'shared-512',
  'shared-2400',
  'turns',
  'no-neighbour',
  'neighbour',
] as const;

/** mulberry32 */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
