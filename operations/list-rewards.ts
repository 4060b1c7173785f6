/** The attempts of a run that wait for a reward, from the store alone. */
import { formatDuration, plural } from '../core/reports/format.ts';
import { readAwaited } from '../views/attempts/awaited.ts';
import type { Lines, Place, Table } from './operation.ts';
import type { FoundRewards } from './results.ts';
import { planLinks } from './review/links.ts';
import { wakeOverServer } from './wake.ts';

interface Listing {
  readonly run: string;
  /** Address of `temper review`. */
  readonly links: string | null;
  readonly expiresDays: number | null;
}

export async function findAwaited(place: Place, { run, ...links }: Listing): Promise<FoundRewards> {
  const linked = planLinks(links, place.env);
  const store = await place.store();
  const found = await readAwaited(store, run);
  if (found === null) return { run, awaited: [], completeGroups: 0, isExternal: false };
  // A signal that was lost is sent again.
  if (found.completeGroups > 0) await wakeOverServer(place, store, run);
  return { ...(linked === null ? found : await linked.addTo(found, store)), isExternal: true };
}

export function awaitedLines({ run, awaited, completeGroups, link: review, isExternal }: FoundRewards): Lines {
  if (!isExternal) return [`the run ${run} waits for no rewards: its agent has no reward: external({ … })`];
  const groups = new Set(awaited.map(({ step, group }) => `${step}.${group}`)).size;
  return [
    ...(awaited.length > 0 ? [tableOf(awaited, Date.now())] : []),
    ...awaited.flatMap(({ attempt, link }) => (link === undefined ? [] : [`${attempt}  ${link}`])),
    ...(review === undefined ? [] : [`review  ${review}`]),
    `${plural(awaited.length, 'reward')} of the run ${run} awaited, in ${plural(groups, 'group')}`,
    ...(completeGroups > 0 ? [`${plural(completeGroups, 'group')} complete, and decided once the run continues`] : []),
  ];
}

function tableOf(attempts: FoundRewards['awaited'], now: number): Table {
  const rows = attempts.map(({ attempt, scenario, step, playedAt, lastMessage }) => [
    attempt,
    clip(scenario, 30),
    String(step),
    playedAt === null ? '–' : formatDuration(Math.max(0, now - Date.parse(playedAt)) / 1000),
    clip(lastMessage, 60),
  ]);
  return { head: ['attempt', 'scenario', 'step', 'waiting', 'last message'], rows };
}

function clip(text: string, width: number): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}
