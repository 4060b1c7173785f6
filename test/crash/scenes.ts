/**
 * All that the suite plays, in order and numbered: the table, random kills, the death of everything, then what has stacks
 * of its own: the rows of the table whose store is in a bucket, and random kills where vLLM samples or ranks train.
 */
import type { Digest } from './evidence.ts';
import { needsStandby, playRow, type Verdict } from './row.ts';
import {
  playColdCommandLine,
  playEndOfEverything,
  playRandomKills,
  VICTIMS,
  VICTIMS_WITH_RANKS,
  VICTIMS_WITH_VLLM,
} from './storm.ts';
import { describeRow, OVERLAPPING, TABLE, type StoreKind } from './table.ts';
import { playUndisturbed } from './undisturbed.ts';
import type { World } from './world.ts';

/** The place of the store; where vLLM samples, or several ranks train, it is a folder. */
export type Stage = StoreKind | 'vllm' | 'ranks';

export interface Scene {
  readonly number: number;
  readonly title: string;
  readonly inSlice: boolean;
  readonly stage: Stage;
  readonly needsStandby: boolean;
  play(world: World, reference: Digest): Promise<Verdict>;
}

type Unnumbered = Omit<Scene, 'number'>;

/** Runs of up to four kills each: forty in all, though some end before their fourth. */
const RANDOM_RUNS = 16;
const ENDS_OF_EVERYTHING = 10;
const OVERLAPPING_RUNS = 3;
const RUNS_WITH_VLLM = 4;
const RUNS_WITH_RANKS = 4;
/** Looks at the run's state, four a second, after which the cold command line is killed. */
const COLD_LOOKS = 8;

export function allScenes(seed: number): readonly Scene[] {
  const rows = TABLE.map((row): Unnumbered => ({
    title: describeRow(row),
    inSlice: row.inSlice,
    stage: row.store,
    needsStandby: needsStandby(row),
    play: (world, reference) => playRow(world, row, reference),
  }));
  const random = Array.from({ length: RANDOM_RUNS }, (_, index): Unnumbered => ({
    title: `kills at random times, seed ${seed + index}`,
    inSlice: false,
    stage: 'folder',
    needsStandby: false,
    play: (world, reference) => playRandomKills(world, seed + index, reference, VICTIMS),
  }));
  const ends = Array.from({ length: ENDS_OF_EVERYTHING }, (_, index): Unnumbered => ({
    title: `everything killed at once, seed ${seed + index}`,
    inSlice: index === 0,
    stage: 'folder',
    needsStandby: false,
    play: (world, reference) => playEndOfEverything(world, seed + index, reference),
  }));
  const cold: Unnumbered = {
    title: 'a command line killed, with the whole stack behind it',
    inSlice: false,
    stage: 'folder',
    needsStandby: false,
    play: (world, reference) => playColdCommandLine(world, COLD_LOOKS, reference),
  };
  const overlapping = OVERLAPPING.map((row): Unnumbered => ({
    title: `${describeRow(row)}, steps overlap`,
    inSlice: false,
    stage: 'folder',
    needsStandby: needsStandby(row),
    play: (world) => playOverlapping(world, (reference) => playRow(world, row, reference)),
  }));
  const randomOverlapping = Array.from({ length: OVERLAPPING_RUNS }, (_, index): Unnumbered => ({
    title: `kills at random times, steps overlap, seed ${seed + index}`,
    inSlice: false,
    stage: 'folder',
    needsStandby: false,
    play: (world) => playOverlapping(world, (reference) => playRandomKills(world, seed + index, reference, VICTIMS)),
  }));
  const withVllm = Array.from({ length: RUNS_WITH_VLLM }, (_, index): Unnumbered => ({
    title: `vLLM and workers killed at random times, seed ${seed + index}`,
    inSlice: false,
    stage: 'vllm',
    needsStandby: false,
    play: (world) => playRandomKills(world, seed + index, null, VICTIMS_WITH_VLLM),
  }));
  const withRanks = Array.from({ length: RUNS_WITH_RANKS }, (_, index): Unnumbered => ({
    title: `ranks and GPU workers killed at random times, seed ${seed + index}`,
    inSlice: false,
    stage: 'ranks',
    needsStandby: false,
    play: (world) =>
      playBesideItsOwn(world, (reference) => playRandomKills(world, seed + index, reference, VICTIMS_WITH_RANKS)),
  }));
  const [inFolder, inBucket] = [
    rows.filter(({ stage }) => stage === 'folder'),
    rows.filter(({ stage }) => stage === 'bucket'),
  ];
  const all = [
    ...inFolder,
    ...random,
    ...ends,
    ...overlapping,
    ...randomOverlapping,
    // The last one in the folder: it ends the warm stack, which has the points.
    cold,
    ...inBucket,
    ...withVllm,
    ...withRanks,
  ];
  return all.map((scene, index) => ({ ...scene, number: index + 1 }));
}

const undisturbed = new WeakMap<World, Digest>();

/** Compared with a run whose steps overlap, too, and which nothing disturbed. */
async function playOverlapping(world: World, play: (reference: Digest) => Promise<Verdict>): Promise<Verdict> {
  world.maxStaleness = 1;
  try {
    return await playBesideItsOwn(world, play);
  } finally {
    world.maxStaleness = 0;
  }
}

/** Compared with an undisturbed run of this world. */
async function playBesideItsOwn(world: World, play: (reference: Digest) => Promise<Verdict>): Promise<Verdict> {
  const reference = undisturbed.get(world) ?? (await playUndisturbed(world));
  undisturbed.set(world, reference);
  return play(reference);
}
