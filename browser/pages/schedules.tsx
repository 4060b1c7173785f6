/** Schedules of the store: what each trains and when, how its last run went, and what can be done with it. */
import type { ScheduleSummary } from '../../views/api/schedule-views.ts';
import { plural } from '../../core/reports/format.ts';
import { useData, useServerInfo } from '../data.ts';
import { pathTo } from '../location.ts';
import { ActionGroup } from '../parts/action-group.tsx';
import { actionsOn } from '../parts/action-fields.ts';
import { Chip, Empty, Facts, Shown } from '../parts/small.tsx';

const CHIPS = { active: 'accent', running: 'accent', waiting: 'warn', paused: '' } as const;

export function SchedulesPage() {
  return (
    <>
      <div class="page-head">
        <h1>Schedules</h1>
      </div>
      <Shown loaded={useData<readonly ScheduleSummary[]>('schedules')} what="the schedules">
        {(schedules) =>
          schedules.length === 0 ? (
            <Empty title="No schedules yet">
              Create one with <code>temper schedule create AGENT_FILE --cron …</code>.
            </Empty>
          ) : (
            schedules.map((schedule) => <Schedule key={schedule.name} schedule={schedule} />)
          )
        }
      </Shown>
    </>
  );
}

function Schedule({ schedule }: { schedule: ScheduleSummary }) {
  const { name, state, reason, lastRun, nextTimes, firings, skipped, missed } = schedule;
  const idle = state === 'paused' ? 'schedule pause' : 'schedule resume';
  const actions = actionsOn('schedule', useServerInfo()).filter(({ action }) => action !== idle);
  return (
    <section class="card padded" aria-label={`Schedule ${name}`}>
      <header class="masthead">
        <h2>{name}</h2>
        <Chip kind={CHIPS[state]}>{state}</Chip>
        {reason !== null && <span class="dim">{reason}</span>}
      </header>
      <Facts
        of={[
          ['Agent', schedule.agent],
          ['Base model', schedule.baseModel],
          ['Trains', schedule.work],
          ['When', schedule.timing],
          ['Next', nextTimes[0]?.replace('T', ' ').replace(/:00Z$/, ' UTC') ?? '–'],
          ['Starts from', schedule.begins ?? 'a new adapter'],
          [
            'Last run',
            lastRun === null ? (
              '–'
            ) : (
              <a href={`#${pathTo('runs', lastRun.run)}`}>{`${lastRun.run} (${lastRun.state})`}</a>
            ),
          ],
          ['Fired', plural(firings, 'time')],
          ['Skipped, missed', `${skipped}, ${missed}`],
        ]}
      />
      <ActionGroup label={`Actions on ${name}`} actions={actions} input={{ name }} />
    </section>
  );
}
