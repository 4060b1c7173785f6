import type { Store } from '../store.ts';

/** Groups of a step that are read at once: it may have more files than a process may open. */
export const GROUPS_AT_ONCE = 64;
/** Whole groups, with all that was said in them, in memory at once. */
export const WHOLE_GROUPS_AT_ONCE = 4;

/** Names directly under a folder, in order, those of folders without their `/`. */
export async function childNames(store: Store, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const key of store.list(prefix)) names.push(key.slice(prefix.length + 1).replace(/\/$/, ''));
  return names;
}

/** Those that are numbers, ascending: folders of branches and steps, files like `3.json`. */
export async function childNumbers(store: Store, prefix: string): Promise<number[]> {
  const numbers = (await childNames(store, prefix)).map((name) => /^(0|[1-9]\d*)(\.json)?$/.exec(name)?.[1]);
  return numbers
    .filter((number) => number !== undefined)
    .map(Number)
    .toSorted((a, b) => a - b);
}
