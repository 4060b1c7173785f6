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
  type Victims,
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
  const seeds = (count: number) => Array.from({ length: count }, (_, index) => seed + index);
  const rows = TABLE.map((row) =>
    scene(describeRow(row), (world, reference) => playRow(world, row, reference), {
      inSlice: row.inSlice,
      stage: row.store,
      needsStandby: needsStandby(row),
    }),
  );
  const random = (title: string, count: number, victims: Victims, more: Partial<Scene> = {}, beside: Beside = asIs) =>
    seeds(count).map((each) => {
      const play: Play = (world, reference) => playRandomKills(world, each, reference, victims);
      return scene(`${title} killed at random times, seed ${each}`, beside(play), more);
    });
  const all = [
    ...rows.filter(({ stage }) => stage === 'folder'),
    ...random('processes', RANDOM_RUNS, VICTIMS),
    ...seeds(ENDS_OF_EVERYTHING).map((each, index) =>
      scene(
        `everything killed at once, seed ${each}`,
        (world, reference) => playEndOfEverything(world, each, reference),
        { inSlice: index === 0 },
      ),
    ),
    ...OVERLAPPING.map((row) => {
      const play: Play = (world, reference) => playRow(world, row, reference);
      return scene(`${describeRow(row)}, steps overlap`, overlapping(play), { needsStandby: needsStandby(row) });
    }),
    ...random('processes of overlapping steps', OVERLAPPING_RUNS, VICTIMS, {}, overlapping),
    // The last one in the folder: it ends the warm stack, which has the points.
    scene('a command line killed, with the whole stack behind it', (world, reference) =>
      playColdCommandLine(world, COLD_LOOKS, reference),
    ),
    ...rows.filter(({ stage }) => stage === 'bucket'),
    ...random('vLLM and workers', RUNS_WITH_VLLM, VICTIMS_WITH_VLLM, { stage: 'vllm' }, besideNone),
    ...random('ranks and GPU workers', RUNS_WITH_RANKS, VICTIMS_WITH_RANKS, { stage: 'ranks' }, besideItsOwn),
  ];
  return all.map((each, index) => ({ ...each, number: index + 1 }));
}

function scene(title: string, play: Scene['play'], more: Partial<Scene> = {}): Unnumbered {
  return { title, play, inSlice: false, stage: 'folder', needsStandby: false, ...more };
}

type Play = (world: World, reference: Digest | null) => Promise<Verdict>;
/** The run that a disturbed one is compared with. */
type Beside = (play: Play) => Scene['play'];

const asIs: Beside = (play) => play;

/** Two runs sample other tokens. */
const besideNone: Beside = (play) => (world) => play(world, null);

/** An undisturbed run of this world. */
const besideItsOwn: Beside = (play) => async (world) => {
  const reference = undisturbed.get(world) ?? (await playUndisturbed(world));
  undisturbed.set(world, reference);
  return play(world, reference);
};

/** A run whose steps overlap, too, and which nothing disturbed. */
const overlapping: Beside = (play) => async (world, reference) => {
  world.maxStaleness = 1;
  try {
    return await besideItsOwn(play)(world, reference);
  } finally {
    world.maxStaleness = 0;
  }
};

const undisturbed = new WeakMap<World, Digest>();
