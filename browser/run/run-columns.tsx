/** Columns of the list of runs: a narrow window shows the first, with the result. */
import { shortModelName } from '../../core/reports/describe-config.ts';
import { formatDuration, formatNumber } from '../../core/reports/format.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import { ProgressBar, Sparkline } from '../parts/bars.tsx';
import { Chip, Ago } from '../parts/small.tsx';
import type { TableColumn } from '../parts/table-column.ts';

export const RUN_COLUMNS: readonly TableColumn<RunRow>[] = [
  {
    key: 'run',
    label: 'Run',
    width: 'minmax(146px, 2.4fr)',
    value: ({ run }) => run,
    render: ({ run, agent, baseModel, parent }) => (
      <span class="two-lines">
        <span title={run}>{run}</span>
        <small>
          {agent} on {shortModelName(baseModel)}
          {parent === null ? '' : `, from ${parent}`}
        </small>
      </span>
    ),
  },
  {
    key: 'heldOut',
    label: 'Held out',
    width: 'minmax(120px, 1fr)',
    value: ({ heldOut }) => heldOut?.value ?? null,
    render: ({ heldOut }) =>
      heldOut === null ? (
        <span class="dim">–</span>
      ) : (
        <span class="two-lines" title={`after step ${heldOut.step}`}>
          <span>
            <b>{formatNumber(heldOut.value)}</b> {heldOut.label}
          </span>
          {heldOut.before !== null && <small>from {formatNumber(heldOut.before)}</small>}
        </span>
      ),
  },
  {
    key: 'state',
    label: 'State',
    width: 'minmax(168px, 1.4fr)',
    value: ({ state }) => state,
    render: (row) => <State row={row} />,
  },
  {
    key: 'reward',
    label: 'Reward of last step',
    width: 'minmax(184px, 1.2fr)',
    value: ({ reward }) => reward,
    render: ({ reward, sparkline }) => (
      <span class="spark">
        <Sparkline values={sparkline} what="reward" />
        <b>{formatNumber(reward)}</b>
      </span>
    ),
  },
  {
    key: 'progress',
    label: 'Steps',
    width: 'minmax(156px, 1fr)',
    value: ({ step, steps }) => step / Math.max(1, steps),
    render: ({ run, step, steps }) => <ProgressBar value={step} of={steps} what={`steps of ${run}`} />,
  },
  {
    key: 'time',
    label: 'Time',
    align: 'end',
    width: 'minmax(96px, 0.8fr)',
    value: ({ wallSeconds }) => wallSeconds,
    render: ({ wallSeconds }) => formatDuration(wallSeconds),
  },
  {
    key: 'cost',
    label: 'Cost',
    align: 'end',
    width: 'minmax(72px, 0.7fr)',
    value: ({ usd }) => usd,
    render: ({ usd }) => (usd === null ? <span class="dim">–</span> : `$${formatUsd(usd)}`),
  },
  {
    key: 'host',
    label: 'Host',
    width: 'minmax(84px, 0.9fr)',
    value: ({ host }) => host,
    render: ({ host }) => <span title={host ?? undefined}>{host ?? <span class="dim">–</span>}</span>,
  },
  {
    key: 'updated',
    label: 'Updated',
    align: 'end',
    width: 'minmax(104px, 0.9fr)',
    value: ({ updatedAt }) => updatedAt,
    render: ({ updatedAt }) => <Ago at={updatedAt} />,
  },
];

/** Chooses runs to compare. */
export function compareColumn(chosen: readonly string[], choose: (run: string) => void): TableColumn<RunRow> {
  return {
    key: 'compare',
    label: 'Compare',
    title: 'Choose runs to compare; on a row, press Space',
    width: '84px',
    render: ({ run }) => (
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={`Compare ${run}`}
        checked={chosen.includes(run)}
        onChange={() => choose(run)}
      />
    ),
  };
}

function State({ row: { state, waitingFor, waitingSince, advisories } }: { row: RunRow }) {
  return (
    <span class="two-lines">
      <span>
        <Chip kind={state}>{state}</Chip>
        {advisories > 0 && (
          <Chip kind="warn" title={advisories === 1 ? '1 advisory' : `${advisories} advisories`}>
            {advisories} ⚠
          </Chip>
        )}
      </span>
      {waitingFor !== null && (
        <small class="waiting" title={`waiting for ${waitingFor}`}>
          {waitingSince !== null && (
            <>
              <Ago at={waitingSince} since />:{' '}
            </>
          )}
          {waitingFor}
        </small>
      )}
    </span>
  );
}
