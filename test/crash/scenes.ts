/**
 * All that the suite plays, in order and numbered: the table, random kills, the death of everything, and last the rows of
 * the table whose store is in a bucket: they have a stack of their own.
 */
import type { Digest } from './evidence.ts';
import { needsStandby, playRow, type Verdict } from './row.ts';
import { playColdCommandLine, playEndOfEverything, playRandomKills } from './storm.ts';
import { describeRow, TABLE, type StoreKind } from './table.ts';
import type { World } from './world.ts';

export interface Scene {
  readonly number: number;
  readonly title: string;
  readonly inSlice: boolean;
  readonly store: StoreKind;
  readonly needsStandby: boolean;
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
    needsStandby: needsStandby(row),
    play: (world, reference) => playRow(world, row, reference),
  }));
  const random = Array.from({ length: RANDOM_RUNS }, (_, index): Unnumbered => ({
    title: `kills at random times, seed ${seed + index}`,
    inSlice: false,
    store: 'folder',
    needsStandby: false,
    play: (world, reference) => playRandomKills(world, seed + index, reference),
  }));
  const ends = Array.from({ length: ENDS_OF_EVERYTHING }, (_, index): Unnumbered => ({
    title: `everything killed at once, seed ${seed + index}`,
    inSlice: index === 0,
    store: 'folder',
    needsStandby: false,
    play: (world, reference) => playEndOfEverything(world, seed + index, reference),
  }));
  const cold: Unnumbered = {
    title: 'a command line killed, with the whole stack behind it',
    inSlice: true,
    store: 'folder',
    needsStandby: false,
    play: (world, reference) => playColdCommandLine(world, COLD_LOOKS, reference),
  };
  const [inFolder, inBucket] = [
    rows.filter(({ store }) => store === 'folder'),
    rows.filter(({ store }) => store === 'bucket'),
  ];
  return [...inFolder, ...random, ...ends, cold, ...inBucket].map((scene, index) => ({ ...scene, number: index + 1 }));
}
