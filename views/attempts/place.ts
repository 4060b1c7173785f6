/** Names of groups and attempts in addresses, and the files that they are in. */
import { formatGroupId, parseGroupId } from '../../core/names/attempt-id.ts';
import {
  evalRolloutsKey,
  evalTimesKey,
  groupTimesKey,
  replayKey,
  rolloutsKey,
  validationKey,
  type GroupPlace,
  type StepPlace,
} from '../../store/layout.ts';
import { isReplayId } from '../../store/records/groups/replays.ts';
import type { NeighboursOf } from '../api/attempt-views.ts';
import { NotFound } from '../context/context.ts';

/** Attempts that were played together. */
export type PlayPlace =
  | ({ readonly kind: 'group' } & GroupPlace)
  | ({ readonly kind: 'eval' } & StepPlace)
  /** A group that a script's own loop gathered to measure. */
  | ({ readonly kind: 'validation' } & GroupPlace)
  /** One attempt that was played anew from one of its turns on. */
  | ({ readonly kind: 'replay'; readonly id: string } & StepPlace);

const REPLAY = 'replay.';
const VALIDATION = 'validation.';

/** `0.3.2`, `eval.0.30`, `validation.0.3.2`; throws NotFound for anything else. */
export function parsePlayId(run: string, id: string): PlayPlace {
  const place = findGroup(run, id);
  if (place !== null) return place;
  throw new NotFound(`a group is BRANCH.STEP.GROUP, such as 0.3.2, or eval.BRANCH.STEP, got ${id}`);
}

/** `0.3.2.5`, `eval.0.30.17`, `validation.0.3.2.5`; throws NotFound for anything else. */
export function parseAttemptOf(run: string, id: string): { place: PlayPlace; attempt: number } {
  if (id.startsWith(REPLAY)) return parseReplayOf(run, id);
  const [, group = '', attempt = ''] = /^(.+)\.(0|[1-9][0-9]{0,8})$/.exec(id) ?? [];
  const place = findGroup(run, group);
  if (place !== null) return { place, attempt: Number(attempt) };
  throw new NotFound(
    `an attempt is BRANCH.STEP.GROUP.ATTEMPT, such as 0.3.2.5, or eval.BRANCH.STEP.ATTEMPT, got ${id}`,
  );
}

function parseReplayOf(run: string, id: string): { place: PlayPlace; attempt: number } {
  const own = id.slice(REPLAY.length);
  if (!isReplayId(own)) throw new NotFound(`a replay is replay.ATTEMPT.tTURN.HASH, got ${id}`);
  const { place, attempt } = parseAttemptOf(run, own.replace(/\.t\d+\..*/, ''));
  const { branch, step } = place;
  return { place: { kind: 'replay', run, branch, step, id: own }, attempt };
}

function findGroup(run: string, id: string): PlayPlace | null {
  const isValidation = id.startsWith(VALIDATION);
  const found = parseGroupId(isValidation ? id.slice(VALIDATION.length) : id);
  if (found === null) return null;
  const { branch, step, group } = found;
  if (group !== null) return { kind: isValidation ? 'validation' : 'group', run, branch, step, group };
  return isValidation ? null : { kind: 'eval', run, branch, step };
}

export function groupIdOf(place: PlayPlace): string {
  if (place.kind === 'replay') return `${REPLAY}${place.id}`;
  if (place.kind === 'eval') return formatGroupId({ ...place, group: null });
  return `${place.kind === 'group' ? '' : VALIDATION}${formatGroupId(place)}`;
}

export function attemptIdOf(place: PlayPlace, attempt: number): string {
  if (place.kind === 'replay') return groupIdOf(place);
  return `${groupIdOf(place)}.${attempt}`;
}

export const NO_NEIGHBOURS: NeighboursOf<string> = { previous: null, next: null };

/** Neighbours of an attempt in its group. */
export function neighboursOf(
  place: PlayPlace,
  attempts: readonly { readonly attempt: number }[],
  index: number,
): NeighboursOf<string> {
  const idAt = (at: number): string | null => {
    const found = attempts[at];
    return found === undefined ? null : attemptIdOf(place, found.attempt);
  };
  return { previous: idAt(index - 1), next: idAt(index + 1) };
}

/** `group 3`, `evaluation after step 5` */
export function titleOf(place: PlayPlace): string {
  if (place.kind === 'replay') return `replay of ${place.id.replace(/\.t\d+\..*/, '')}`;
  if (place.kind === 'eval') return `evaluation after step ${place.step}`;
  return place.kind === 'group' ? `group ${place.group}` : `validation group ${place.group}`;
}

export function filesOf(place: PlayPlace): { rollouts: string; times: string | null } {
  if (place.kind === 'group') return { rollouts: rolloutsKey(place), times: groupTimesKey(place) };
  if (place.kind === 'eval') return { rollouts: evalRolloutsKey(place), times: evalTimesKey(place) };
  if (place.kind === 'replay') return { rollouts: replayKey(place.run, place.id), times: null };
  return { rollouts: validationKey(place), times: null };
}
