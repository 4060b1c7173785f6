/** A gathered group between the store and a script: found by where its trajectories come from, whatever became of them. */
import { rolloutsKey, validationKey, type GroupPlace } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import { readRollouts, type StoredRollouts } from '../../store/records/groups/group-files.ts';
import type { Split } from './plan-loop.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { byAttempt, type TrajectoriesByAttempt } from './attempt-trajectories.ts';
import type { LoopRun } from './loop-run.ts';
import { TrajectoryGroup } from './trajectory-group.ts';
import { readTrajectories } from './trajectory-record.ts';
import type { Origin } from './trajectory.ts';

export interface StoredGroup extends StoredRollouts {
  place: GroupPlace;
}

export function gatheredKey(split: Split, place: GroupPlace): string {
  return split === 'train' ? rolloutsKey(place) : validationKey(place);
}

/** Null where the group is still to be played. */
export async function readGathered(store: Store, split: Split, place: GroupPlace): Promise<StoredGroup | null> {
  const stored = await readRollouts(store, gatheredKey(split, place));
  return stored && { place, ...stored };
}

/** The group as the script gets it; null if the script removed it when it was played. */
export function toTrajectoryGroup({ place, rollouts }: StoredGroup, split: Split): TrajectoryGroup | null {
  const { header, attempts } = rollouts;
  if (header.isDropped === true) return null;
  const { run, step, group } = place;
  const kept = attempts.filter(({ status, reward }) => status === 'ok' && reward !== null);
  const trajectories = kept.flatMap((record) =>
    readTrajectories(record, { run, split, step, group, attempt: record.attempt }),
  );
  const exceptions = attempts.flatMap(({ attempt, failure }) => (failure === null ? [] : [{ attempt, ...failure }]));
  const gathered = new TrajectoryGroup(trajectories, { metadata: header.metadata ?? {} });
  gathered.exceptions = exceptions;
  return gathered;
}

/** A script's group, and the group in the store that all of its trajectories come from. */
export interface GivenGroup {
  origin: Origin;
  byAttempt: TrajectoriesByAttempt;
}

export function findOrigin({ name }: LoopRun, group: TrajectoryGroup, split: Split): GivenGroup {
  const origins = group.trajectories.map(({ origin }) => origin);
  const [first] = origins;
  if (group.attempts.length > 0 || origins.some((origin) => origin === null) || !first) throw notGathered(group);
  if (first.run !== name) throw otherModel(first.run, name);
  if (first.split !== split) throw otherSplit(first.split, split);
  const same = origins.every((origin) => origin?.step === first.step && origin.group === first.group);
  if (!same || origins.some((origin) => origin?.run !== name)) throw mixedGroups();
  const places = new Set(origins.map((origin) => `${origin!.attempt} ${origin!.role ?? ''}`));
  if (places.size < origins.length) throw mixedGroups();
  return { origin: first, byAttempt: byAttempt(group.trajectories) };
}

export async function requireGathered(run: LoopRun, origin: Origin): Promise<StoredGroup> {
  const place = { run: run.name, branch: 0, step: origin.step, group: origin.group };
  const stored = await readGathered(run.store, origin.split, place);
  if (stored !== null) return stored;
  const key = gatheredKey(origin.split, place);
  throw new TemperError('StoreCorrupt', `${key} is missing; gather the group again`);
}

function notGathered(group: TrajectoryGroup): TemperError {
  const found = group.attempts.length > 0 ? 'functions that have not run' : 'trajectories that were not gathered';
  const what = group.length === 0 ? 'no trajectory' : found;
  return badConfig(
    `a group must come from gatherTrajectoryGroups, which records what is trained, got a group with ${what}; gather it first`,
  );
}

function otherModel(from: string, run: string): TemperError {
  return badConfig(`a group must have been sampled by ${run}, got one of ${from}; train each model on its own groups`);
}

function otherSplit(from: string, split: string): TemperError {
  const remedy = split === 'train' ? "gather without split: 'val'" : "gather with split: 'val'";
  return badConfig(`a group must have been gathered for ${split}, got one for ${from}; ${remedy}`);
}

function mixedGroups(): TemperError {
  return badConfig(
    'the trajectories of a group must be attempts of one gathered group, each at most once (an advantage is relative to its group); do not mix gathered groups',
  );
}
