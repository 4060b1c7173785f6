import { createRandom, deriveSeed } from '../../core/numbers/seeds.ts';

/** A random number generator in [0, 1), the same for the same parts: `seededRandom(scenario.seed, 'opponent')`. */
export function seededRandom(...parts: (string | number)[]): () => number {
  return createRandom(deriveSeed(parts));
}
