/** Customers who call a shop, drawn by a seed: a wish, an order, and what the policy says to do about it. */
import { seededRandom } from 'temper-rl';
import { pick, shuffle, type Random } from './random.ts';

export interface Scenario {
  readonly id: string;
  readonly seed: number;
}

/** What an agent can do. The keys are the digits from 1 on. */
export const ACTS = ['look', 'cancel', 'return', 'swap', 'move', 'human', 'no'] as const;
type Act = (typeof ACTS)[number];

export interface Call {
  /** The customer's one word. */
  readonly wish: string;
  /** What a look at the order shows, such as `KM sent`. */
  readonly shown: string;
  readonly right: Act;
}

/** Words of four letters: each letter then has one place, where two layers can find it. */
const STATES = ['open', 'sent', 'here'];
/** For each wish of four letters, what is to be done in each of the states. */
const POLICY: Readonly<Record<string, readonly Act[]>> = {
  back: ['cancel', 'human', 'return'],
  swap: ['swap', 'no', 'swap'],
  move: ['move', 'human', 'no'],
};
const SITUATIONS = Object.entries(POLICY).flatMap(([wish, acts]) =>
  acts.map((right, index) => ({ wish, right, state: STATES[index]! })),
);

/** From here on all ids of a seed's orders are held out. */
const FIRST_EXAM_SEED = 1_000_000;
/** About a fifth of all ids is held out. */
const HELD_OUT_EVERY = 5;
const ORDERS = 9;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');

export const scenarios = calls(0, 4500);
export const examScenarios = calls(FIRST_EXAM_SEED, 180);

/** Situations come in turn. */
function calls(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = firstSeed + index;
    const { wish, state } = SITUATIONS[seed % SITUATIONS.length]!;
    return { id: `${wish}-${state}-${seed}`, seed };
  });
}

export function drawCall({ seed }: Scenario): Call {
  const { wish, right, state } = SITUATIONS[seed % SITUATIONS.length]!;
  const random = seededRandom('small-retail', seed);
  for (;;) {
    const orders = drawOrders(random, seed >= FIRST_EXAM_SEED);
    const order = shuffle(orders, random).find((each) => each.state === state);
    if (order !== undefined) return { wish, right, shown: `${order.id} ${order.state}` };
  }
}

function drawOrders(random: Random, isExam: boolean) {
  const ids = new Set<string>();
  while (ids.size < ORDERS) {
    const id = `${pick(LETTERS, random)}${pick(LETTERS, random)}`;
    if (isHeldOut(id) === isExam) ids.add(id);
  }
  return [...ids].map((id) => ({ id, state: pick(STATES, random) }));
}

/** An id is in training or held out, for good. */
function isHeldOut(id: string): boolean {
  return (id.charCodeAt(0) + id.charCodeAt(1)) % HELD_OUT_EVERY === 0;
}
