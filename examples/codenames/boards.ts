/** Boards of `agent.ts`: 25 words, whose owners follow from a seed. */
import { seededRandom } from 'temper-rl';
import type { Board, Owner } from './game.ts';

const OWNERS: readonly Owner[] = [
  ...Array<Owner>(9).fill('team'),
  ...Array<Owner>(15).fill('neutral'),
  ...Array<Owner>(1).fill('assassin'),
];

export function makeBoard(words: readonly string[], seed: number): Board {
  const random = seededRandom(seed);
  const shown = shuffle(words, random).slice(0, OWNERS.length);
  const cards = shown.map((word, index) => ({ word, owner: OWNERS[index]!, isCovered: false }));
  // The order on the table must not tell whose the words are.
  return shuffle(cards, random);
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
