/**
 * The league of a run: for each role that it plays, older checkpoints of the run with the trained roles' scores against
 * them. Pure: opponents are drawn by the run's seed, and scores follow from the groups that were played.
 */
import type { Checkpoint, GroupResult, LeagueOpponent, LeagueScores, RunConfig, Seats } from '../contract/contract.ts';
import { leagueRoles, trainedRoles } from '../rules/roles.ts';
import { createRandom, deriveSeed } from '../numbers/seeds.ts';
import { mean } from '../numbers/statistics.ts';

/** Opponents by role, the oldest first. */
export type League = Record<string, LeagueOpponent[]>;

/** Position of a run as far as the league depends on it. */
interface LeaguePosition {
  step: number;
  league?: League;
}

/** Weight of an opponent that the trained roles always beat: it is met again, in case they forget how. */
const LEAST_WEIGHT = 0.05;
/** Share of the points that stands for an opponent that was not met. */
const UNKNOWN_SHARE = 0.5;

type Drawing = Pick<RunConfig, 'seed' | 'roles'>;

/** Players of a group's roles that are not trained; undefined if there are none. */
export function planSeats(config: Drawing, position: LeaguePosition, group: number): Seats | undefined {
  const seats: Seats = {};
  for (const [name, role] of Object.entries(config.roles ?? {})) {
    if (role.kind === 'checkpoint') seats[name] = { checkpoint: role.checkpoint, policy: role.policy };
    if (role.kind !== 'league') continue;
    const { checkpoint } = drawOpponent(config, position, { role: name, group });
    seats[name] = { checkpoint, policy: role.policy };
  }
  return Object.keys(seats).length === 0 ? undefined : seats;
}

interface Draw {
  role: string;
  group: number;
}

/** Prioritised fictitious self-play: the more points an opponent has kept from the trained roles, the likelier it is. */
export function drawOpponent({ seed }: Drawing, { step, league }: LeaguePosition, { role, group }: Draw) {
  const opponents = league?.[role] ?? [];
  const weights = opponents.map(weightOf);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let left = createRandom(deriveSeed([seed, 'league', step + 1, group, role]))() * total;
  const drawn = opponents.find((_, index) => (left -= weights[index]!) < 0) ?? opponents.at(-1);
  if (drawn === undefined) throw new Error(`the league of the role ${role} has no opponents`);
  return drawn;
}

function weightOf({ played, won }: LeagueOpponent): number {
  const kept = 1 - (played === 0 ? UNKNOWN_SHARE : won / played);
  return kept * kept + LEAST_WEIGHT;
}

/** The league with what a step's groups came to; undefined without one. */
export function scoreLeague(config: Drawing, position: LeaguePosition, played: GroupResult[]): League | undefined {
  const { league } = position;
  if (league === undefined) return undefined;
  const trained = Object.keys(trainedRoles(config) ?? {});
  const scored = leagueRoles(config).map(({ name }) => {
    const met = played.map((group) => ({
      opponent: drawOpponent(config, position, { role: name, group: group.group }),
      points: pointsOf(group, trained, name),
    }));
    return [name, (league[name] ?? []).map((opponent) => addPoints(opponent, met))] as const;
  });
  return Object.fromEntries(scored);
}

type Met = { opponent: LeagueOpponent; points: number[] };

function addPoints(opponent: LeagueOpponent, met: readonly Met[]): LeagueOpponent {
  const points = met.filter((each) => each.opponent === opponent).flatMap((each) => each.points);
  return {
    ...opponent,
    played: opponent.played + points.length,
    won: points.reduce((sum, point) => sum + point, opponent.won),
  };
}

/** Scores by attempt: 1 where the trained roles earned more than the league's, ½ for as much, else 0. */
function pointsOf({ roleRewards = {} }: GroupResult, trained: readonly string[], league: string): number[] {
  return (roleRewards[league] ?? []).flatMap((theirs, attempt) => {
    const ours = mean(trained.flatMap((role) => roleRewards[role]?.[attempt] ?? []));
    if (theirs === null || ours === null) return [];
    return ours > theirs ? 1 : ours === theirs ? UNKNOWN_SHARE : 0;
  });
}

/** The league once a checkpoint is committed: it joins every `every` steps, and the oldest ones leave. */
export function admitToLeague(config: Drawing, league: League, checkpoint: Checkpoint): League {
  const roles = leagueRoles(config).map(({ name, every, keep }) => {
    const opponents = league[name] ?? [];
    const newest = opponents.at(-1)?.checkpoint;
    const isDue = newest === undefined || checkpoint.step >= newest.step + every;
    return [name, isDue ? [...opponents, { checkpoint, played: 0, won: 0 }].slice(-keep) : opponents] as const;
  });
  return Object.fromEntries(roles);
}

/** The part of a position for roles that need the run's earlier checkpoints: nothing without them. */
export function leagueAtStart(
  config: Pick<RunConfig, 'seed' | 'roles' | 'competing'>,
  first: Checkpoint,
): { start?: Checkpoint; league?: League } {
  const hasLeague = leagueRoles(config).length > 0;
  return {
    ...(hasLeague || config.competing === true ? { start: first } : {}),
    ...(hasLeague ? { league: admitToLeague(config, {}, first) } : {}),
  };
}

/** Scores as a commit keeps them. */
export function toLeagueScores(league: League): LeagueScores {
  return Object.fromEntries(
    Object.entries(league).map(([role, opponents]) => [
      role,
      opponents.map(({ checkpoint: { branch, step }, played, won }) => ({ branch, step, played, won })),
    ]),
  );
}
