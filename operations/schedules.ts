/** Operations on schedules that exist. */
import { shortModelName } from '../core/reports/describe-config.ts';
import { plural } from '../core/reports/format.ts';
import { defineOperation } from './operation.ts';
import type { ScheduleSummary } from '../views/api/schedule-views.ts';
import type { Period } from './results.ts';

const work = () => import('./steer-schedule.ts');

const NAME_ARGUMENT = { placeholder: 'NAME' } as const;

export const scheduleList = defineOperation({
  name: 'schedule list',
  summary: 'list schedules with their next time and last result',
  arguments: {},
  flags: {},
  effect: 'reads',
  needsServer: true,
  run: async (_, place) => (await work()).findSchedules(place),
  lines: (found) => {
    if (found.length === 0) return ['no schedules yet; create one with temper schedule create AGENT'];
    const head = ['schedule', 'agent', 'model', 'times', 'state', 'next', 'last run', 'reason'];
    const rows = found.map((summary) => [
      summary.name,
      summary.agent,
      shortModelName(summary.baseModel),
      summary.timing,
      summary.state,
      summary.nextTimes[0] ?? '–',
      describeLast(summary) ?? '–',
      summary.reason ?? '–',
    ]);
    return [{ head, rows }];
  },
});

export const scheduleShow = defineOperation({
  name: 'schedule show',
  summary: 'show one schedule: its next times, its last run, and why it is paused',
  arguments: { name: NAME_ARGUMENT },
  flags: {},
  effect: 'reads',
  needsServer: true,
  run: async ({ name }, place) => (await work()).findSchedule(place, name),
  lines: (summary) => {
    const { skipped, missed, firings } = summary;
    const rows: [string, string | null][] = [
      ['schedule', `${summary.name}: ${summary.agent} on ${summary.baseModel}, ${summary.work}`],
      ['times', summary.timing],
      ['state', summary.state],
      ['reason', summary.reason],
      ['next', summary.nextTimes.slice(0, 5).join(' · ') || null],
      ['last run', describeLast(summary)],
      ['idle', summary.waiting],
      ['starts', `from ${summary.begins ?? 'a new adapter'}`],
      ['fired', `${plural(firings, 'time')}, ${skipped} skipped because a run was in progress, ${missed} missed`],
    ];
    return rows.flatMap(([label, text]) => (text === null ? [] : [`${label.padEnd(9)}  ${text}`]));
  },
});

function describeLast({ lastRun }: ScheduleSummary): string | null {
  return lastRun && `${lastRun.run} (${lastRun.state})`;
}

export const schedulePause = defineOperation({
  name: 'schedule pause',
  summary: 'pause a schedule; a run in progress continues',
  arguments: { name: NAME_ARGUMENT },
  flags: { reason: { kind: 'text', placeholder: 'TEXT', description: 'shown with the schedule' } },
  effect: 'changes',
  needsServer: true,
  button: { label: 'Pause', on: 'schedule' },
  run: async ({ name, reason }, place) => (await work()).pauseSchedule(place, name, reason),
  lines: ({ name }) => [`${name} is paused; a run in progress continues`],
});

export const scheduleResume = defineOperation({
  name: 'schedule resume',
  summary: 'resume a schedule; times missed during the pause are skipped',
  arguments: { name: NAME_ARGUMENT },
  flags: {},
  effect: 'changes',
  needsServer: true,
  button: { label: 'Resume', on: 'schedule' },
  run: async ({ name }, place) => (await work()).resumeSchedule(place, name),
  lines: ({ name, next }) => [`${name} is resumed; next time: ${next ?? 'none'}`],
});

export const scheduleTrigger = defineOperation({
  name: 'schedule trigger',
  summary: 'fire now, even if paused; skipped while a run is in progress',
  arguments: { name: NAME_ARGUMENT },
  flags: {},
  effect: 'pays',
  needsServer: true,
  button: { label: 'Fire now', on: 'schedule', isMain: true },
  run: async ({ name }, place) => (await work()).triggerSchedule(place, name),
  lines: ({ name }) => [`${name} was triggered; see temper schedule show ${name}`],
});

export const scheduleBackfill = defineOperation({
  name: 'schedule backfill',
  summary: 'run a schedule for each of its times in a past period, one after the other',
  details: [
    'T is an ISO time: 2026-11-21T03:00:00Z, or 2026-11-21 for midnight UTC. The period includes both ends.',
    'A time whose run is complete is skipped; one whose run failed continues that run. Backfill ignores a pause of the',
    'schedule, even a pause caused by one of its own runs.',
  ],
  examples: ['temper schedule backfill nightly --from 2026-11-21 --to 2026-11-23'],
  arguments: { name: NAME_ARGUMENT },
  flags: {
    from: {
      kind: 'text',
      placeholder: 'T',
      description: 'start of the period',
      required: 'pass --from 2026-11-21T03:00:00Z',
    },
    to: {
      kind: 'text',
      placeholder: 'T',
      description: 'end of the period, not in the future',
      required: 'pass --to 2026-11-21T03:00:00Z',
    },
  },
  effect: 'pays',
  needsServer: true,
  button: { label: 'Backfill', on: 'schedule' },
  run: async ({ name, from, to }, place) => (await work()).backfillSchedule(place, { name, from, to }),
  lines: ({ name, from, to }: Period) => [
    `${name} runs for each of its times from ${from} to ${to}, one run after the other`,
  ],
});

export const scheduleDelete = defineOperation({
  name: 'schedule delete',
  summary: 'delete a schedule; its runs stay, and a run in progress continues',
  arguments: { name: NAME_ARGUMENT },
  flags: {},
  effect: 'changes',
  needsServer: true,
  button: { label: 'Delete', on: 'schedule', isDangerous: true },
  run: async ({ name }, place) => (await work()).deleteSchedule(place, name),
  lines: ({ name }) => [`${name} is deleted; its runs stay, and a run in progress continues`],
});
