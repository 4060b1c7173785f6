/** Texts that say almost the same: compared by their words, without any model. */

/** Share of common shingles from which two texts are near-duplicates. */
const SIMILAR = 0.8;
const WORDS_OF_SHINGLE = 2;

export interface Fingerprint {
  /** Numbers in their order: tasks that differ in them alone are different tasks. */
  readonly numbers: string;
  readonly shingles: ReadonlySet<string>;
}

export function fingerprint(text: string): Fingerprint {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}\p{P}]+/gu) ?? [];
  const numbers = words.filter((word) => /\p{N}/u.test(word)).join(' ');
  const count = Math.max(1, words.length - WORDS_OF_SHINGLE + 1);
  const shingles = Array.from({ length: count }, (_, at) => words.slice(at, at + WORDS_OF_SHINGLE).join(' '));
  return { numbers, shingles: new Set(shingles) };
}

/** Jaccard similarity of word shingles. */
export function isNearDuplicate(left: Fingerprint, right: Fingerprint): boolean {
  if (left.numbers !== right.numbers) return false;
  const common = [...left.shingles].filter((shingle) => right.shingles.has(shingle)).length;
  return common >= SIMILAR * (left.shingles.size + right.shingles.size - common);
}

/** The texts of `proposed` that repeat neither one of `known` nor an earlier one of themselves, as indices. */
export function findDistinct(proposed: readonly string[], known: readonly string[]): number[] {
  const taken = known.map(fingerprint);
  const distinct: number[] = [];
  for (const [index, text] of proposed.entries()) {
    const print = fingerprint(text);
    if (taken.some((other) => isNearDuplicate(print, other))) continue;
    taken.push(print);
    distinct.push(index);
  }
  return distinct;
}
