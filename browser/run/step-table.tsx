/** Committed steps of a run. */
import { useMemo } from 'preact/hooks';
import type { StepSummary } from '../../core/contract/contract.ts';
import { formatNumber, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import { metricWords, chooseStepMetrics } from '../../views/charts/metric-words.ts';
import { pathTo } from '../location.ts';
import { Empty } from '../parts/small.tsx';
import type { TableColumn } from '../parts/table-column.ts';
import { VirtualTable } from '../parts/table.tsx';

export function StepTable({ run, steps }: { run: string; steps: readonly StepSummary[] }) {
  const newestFirst = useMemo(() => steps.toReversed(), [steps]);
  const columns = useMemo(() => columnsOf(steps), [steps]);
  return (
    <VirtualTable
      label={`Steps of ${run}`}
      columns={columns}
      rows={newestFirst}
      keyOf={({ step }) => String(step)}
      linkOf={({ step }) => pathTo('runs', run, 'steps', step)}
      rowHeight={30}
      classOf={({ groups, examples }) => (groups === 0 && examples === undefined ? 'is-skipped' : '')}
      empty={<Empty title="No step is finished yet" />}
    />
  );
}

type Value = (step: StepSummary) => number | null | undefined;

function columnsOf(steps: readonly StepSummary[]): TableColumn<StepSummary>[] {
  const metrics = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const whole = (value: number | null | undefined): string => (value ?? 0).toLocaleString('en');
  return [
    {
      key: 'step',
      label: 'step',
      width: '76px',
      value: ({ step }) => step,
      render: ({ step, groups, examples }) => (
        <span title={groups === 0 && examples === undefined ? 'skipped: no group had a learning signal' : undefined}>
          {step}
        </span>
      ),
    },
    column('reward', 'reward', ({ reward }) => reward),
    ...metrics.map((name) => column(name, metricLabel(name), (step) => step.metrics[name])),
    ...chooseStepMetrics(steps).map((name) => column(name, metricWords(name), ({ train }) => train[name])),
    column('groups', 'groups', ({ groups }) => groups, whole),
    column('replaced', 'replaced', ({ replacedGroups }) => replacedGroups, whole),
    column('failed', 'failed', ({ failedAttempts }) => failedAttempts, whole),
    column('tokens', 'tokens', ({ sampledTokens }) => sampledTokens, whole),
    column('seconds', 'seconds', ({ seconds }) => seconds['step']),
    column(
      'learningRate',
      'learning rate',
      ({ learningRate }) => learningRate,
      (value) => value?.toExponential(2) ?? '–',
    ),
    {
      key: 'adapter',
      label: 'adapter',
      width: 'minmax(120px, 1fr)',
      align: 'end',
      render: ({ adapterSha256 }) => <code title={adapterSha256}>{adapterSha256.slice(0, 12)}</code>,
    },
  ];
}

/** Wide enough for its head. */
function column(
  key: string,
  label: string,
  value: Value,
  format: (value: number | null | undefined) => string = formatNumber,
): TableColumn<StepSummary> {
  return {
    key,
    label,
    align: 'end',
    width: `minmax(${Math.max(80, 34 + label.length * 7.6)}px, 1fr)`,
    value: (step) => value(step) ?? null,
    render: (step) => format(value(step)),
  };
}
