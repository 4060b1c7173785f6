/** Attempts of a run that wait for a reward from outside. */
import { formatAttemptId } from '../../core/names/attempt-id.ts';
import { deadlineOf } from '../../core/plan/given.ts';
import { listAwaited, type AwaitedGroup } from '../../store/records/rewards/awaited-groups.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import { inPlayOrder, type AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { AwaitedAttempt, AwaitedList } from '../api/attempt-views.ts';
import type { ViewContext } from '../context/context.ts';
import { messageText } from '../api/message-text.ts';
import { viewMessage } from './messages.ts';
import { readRunInStore } from './step-facts.ts';

/** An empty list, if the run rewards itself. */
export async function viewAwaited({ store }: ViewContext, run: string): Promise<AwaitedList> {
  await readRunInStore({ store }, run);
  return (await readAwaited(store, run)) ?? { run, awaited: [], completeGroups: 0 };
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
