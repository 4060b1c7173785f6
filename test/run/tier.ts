/** Which tests are played now: those that every landing needs (`npm test`), or all of them (`npm run test:all`). */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export type Tier = 'landing' | 'nightly';

/** Set for the processes of `npm run test:all`. */
export const TIER_VARIABLE = 'TEMPER_TEST_TIER';

/** True where the tests of both tiers are wanted: `npm run test:all`, or a file that is run by its name with the variable. */
export const isNightly = (): boolean => process.env[TIER_VARIABLE] === 'nightly';

/** A hash of all committed files; of nothing where this is no checkout of git, so that the same tests are drawn each time. */
export function treeHash(): string {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] });
    return tree.toString().trim();
  } catch {
    return '';
  }
}

/** `count` of the items, drawn by `seed`: another tree draws others, and each is met within some landings. */
export function draw<T>(items: readonly T[], count: number, nameOf: (item: T) => string, seed = treeHash()): T[] {
  const rank = (item: T) =>
    createHash('sha256')
      .update(`${seed}\0${nameOf(item)}`)
      .digest('hex');
  return items
    .map((item) => ({ item, rank: rank(item) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, count)
    .map(({ item }) => item);
}
