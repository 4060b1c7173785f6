/** Attempts of a run that wait for a reward, as commands print them and the server answers them. */
import { formatAttemptId } from '../../core/names/attempt-id.ts';
import { deadlineOf } from '../../core/plan/given.ts';
import { listAwaited, type AwaitedGroup } from '../../store/records/rewards/awaited-groups.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import { inPlayOrder, type AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { messageText, viewMessage } from '../../views/attempts/messages.ts';

export interface AwaitedAttempt {
  readonly attempt: string;
  readonly scenario: string;
  readonly step: number;
  readonly group: number;
  readonly playedAt: string | null;
  /** Time at which its group is decided without it; null: never. */
  readonly deadline: string | null;
  readonly lastMessage: string;
  /** Page on which a person gives the reward; absent if none was asked for. */
  readonly link?: string;
}

export interface AwaitedList {
  readonly run: string;
  readonly awaited: readonly AwaitedAttempt[];
  /** Groups that only have to be decided. */
  readonly completeGroups: number;
  /** People compare them two at a time, so none takes a reward by itself. */
  readonly byPairs?: true;
  /** Page of all comparisons of such a run; absent if no links were asked for. */
  readonly link?: string;
}

/** Null if the run rewards itself. */
export async function readAwaited(store: Store, run: string): Promise<AwaitedList | null> {
  const { config } = (await requireRun(store, run)).file;
  if (config.external === undefined) return null;
  const groups = await listAwaited(store, run);
  const awaited = groups.flatMap((group) => group.missing.map((record) => describe(group, record, config)));
  const byPairs = config.external.review?.pairwise === true ? { byPairs: true as const } : {};
  return { run, awaited, ...byPairs, completeGroups: groups.filter(({ missing }) => missing.length === 0).length };
}

function describe(
  { place, scenarioId, playedAt }: AwaitedGroup,
  record: AttemptRecord,
  config: Parameters<typeof deadlineOf>[0],
): AwaitedAttempt {
  const deadline = deadlineOf(config, playedAt ?? undefined);
  return {
    attempt: formatAttemptId({ ...place, attempt: record.attempt }),
    scenario: scenarioId,
    step: place.step,
    group: place.group,
    playedAt: playedAt === null ? null : new Date(playedAt).toISOString(),
    deadline: deadline === null ? null : new Date(deadline).toISOString(),
    lastMessage: lastMessage(record),
  };
}

const MAX_TEXT = 8000;

/** The text that the attempt ended with. */
function lastMessage({ calls }: AttemptRecord): string {
  const last = inPlayOrder(calls).at(-1);
  return last === undefined ? '' : messageText(viewMessage(last.message, MAX_TEXT));
}
