/** The league of a run as its commits tell it: its first checkpoint, and the opponents with their scores. */
import type { LeagueScore, Located, RunConfig } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { admitToLeague, leagueAtStart, type League } from '../../core/plan-league.ts';
import { leagueRoles } from '../../core/roles.ts';
import type { Store } from '../store.ts';
import { checkpointOf, type Commit } from './manifest.ts';
import { readCommit } from './run-reader.ts';

/** Empty for a run whose roles neither compete nor have a league. */
export async function findLeague(
  store: Store,
  run: string,
  config: RunConfig,
  newest: Commit,
): Promise<Pick<Located, 'start' | 'league'>> {
  if (leagueRoles(config).length === 0 && config.competing !== true) return {};
  const first = leagueAtStart(config, await readCheckpointAt(store, run, { branch: 0, step: 0 }));
  const { league: scores } = newest.manifest;
  // No step that played has been committed yet.
  if (scores === undefined) return first;
  const opponents = Object.entries(scores).map(async ([role, list]) => {
    return [role, await Promise.all(list.map((score) => readOpponent(store, run, score)))] as const;
  });
  const league: League = Object.fromEntries(await Promise.all(opponents));
  return { ...first, league: admitToLeague(config, league, checkpointOf(run, newest)) };
}

async function readOpponent(store: Store, run: string, { branch, step, played, won }: LeagueScore) {
  return { checkpoint: await readCheckpointAt(store, run, { branch, step }), played, won };
}

async function readCheckpointAt(store: Store, run: string, place: { branch: number; step: number }) {
  const commit = await readCommit(store, { run, ...place });
  if (commit !== null) return checkpointOf(run, commit);
  const rule = `the run ${run} must have the commit of step ${place.step} of branch ${place.branch}, which its league plays against`;
  throw new TemperError('StoreCorrupt', `${rule}; restore it from a copy`);
}
