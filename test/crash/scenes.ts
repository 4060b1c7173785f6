/** All that the suite plays, in order and numbered: the table, then random kills, then the death of everything. */
import type { Digest } from './evidence.ts';
import { playRow, type Verdict } from './row.ts';
import { playColdCommandLine, playEndOfEverything, playRandomKills } from './storm.ts';
import { describeRow, TABLE, type StoreKind } from './table.ts';
import type { World } from './world.ts';

export interface Scene {
  readonly number: number;
  readonly title: string;
  readonly inSlice: boolean;
  readonly store: StoreKind;
  play(world: World, reference: Digest): Promise<Verdict>;
}

type Unnumbered = Omit<Scene, 'number'>;

/** Of up to four kills each: forty in all, though some runs end before their fourth. */
const RANDOM_RUNS = 16;
const ENDS_OF_EVERYTHING = 10;
/** Looks at the run's state, four a second, after which the cold command line is killed. */
const COLD_LOOKS = 8;

export function allScenes(seed: number): readonly Scene[] {
  const rows = TABLE.map((row): Unnumbered => ({
    title: describeRow(row),
    inSlice: row.inSlice,
    store: row.store,
    play: (world, reference) => playRow(world, row, reference),
  }));
  const random = Array.from({ length: RANDOM_RUNS }, (_, index): Unnumbered => ({
    title: `kills at random times, seed ${seed + index}`,
    inSlice: false,
    store: 'folder',
    play: (world, reference) => playRandomKills(world, seed + index, reference),
  }));
  const ends = Array.from({ length: ENDS_OF_EVERYTHING }, (_, index): Unnumbered => ({
    title: `everything killed at once, seed ${seed + index}`,
    inSlice: index === 0,
    store: 'folder',
    play: (world, reference) => playEndOfEverything(world, seed + index, reference),
  }));
  const cold: Unnumbered = {
    title: 'a command line killed, with the whole stack behind it',
    inSlice: true,
    store: 'folder',
    play: (world, reference) => playColdCommandLine(world, COLD_LOOKS, reference),
  };
  return [...rows, ...random, ...ends, cold].map((scene, index) => ({ ...scene, number: index + 1 }));
}
