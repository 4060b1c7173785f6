/** Page of `temper eval`: models as bars with intervals, their numbers, and their attempts at the same scenarios. */
import type { Estimate } from '../../core/numbers/statistics.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { EvaluationView, Measure } from '../../views/api/evaluation-view.ts';
import { GroupCard } from '../attempt/group-card.tsx';
import { useData } from '../data.ts';
import { IntervalBars } from '../parts/bars.tsx';
import { PlainTable } from '../parts/plain-table.tsx';
import { Shown } from '../parts/small.tsx';

export function EvaluationPage() {
  return (
    <Shown loaded={useData<EvaluationView>('evaluation')} what="the evaluation">
      {(view) => <Evaluation view={view} />}
    </Shown>
  );
}

function Evaluation({ view }: { view: EvaluationView }) {
  const { agent, scenarios, models, measures, notes, groups, leftOut } = view;
  return (
    <>
      <header class="masthead">
        <h1>{agent}</h1>
        <span class="dim">
          {plural(scenarios, 'scenario')}, each played once by every model; lines are 95 % intervals
        </span>
      </header>
      {notes.map((note, index) => (
        <p key={index} class="note">
          {note}
        </p>
      ))}
      <h2>Models</h2>
      <div class="charts">
        {measures.map((measure) => (
          <section key={measure.label} class="card chart">
            <h3>{measure.label}</h3>
            <IntervalBars
              what={`${measure.label} by model`}
              range={measure.isShare ? [0, 1] : rangeOf(measure)}
              bars={models.map(({ model }, index) => ({ label: model, ...barOf(measure.values[index] ?? null) }))}
            />
          </section>
        ))}
      </div>
      <h2>Numbers</h2>
      <Numbers view={view} />
      {groups.length > 0 && <h2>Attempts</h2>}
      {groups.map((group) => (
        <GroupCard key={group.id} group={group} href={null} hrefOf={() => null} />
      ))}
      {leftOut > 0 && <p class="note">{plural(leftOut, 'more scenario')} not shown.</p>}
    </>
  );
}

function barOf(value: Estimate | null) {
  return { value: value?.mean ?? null, interval: value === null ? null : ([value.low, value.high] as const) };
}

/** Range that includes zero and all finite intervals; a single attempt has none. */
function rangeOf({ values }: Measure): readonly [number, number] {
  const ends = values.flatMap((value) => (value === null ? [] : [value.low, value.mean, value.high]));
  const finite = [0, ...ends.filter(Number.isFinite)];
  const [from, to] = [Math.min(...finite), Math.max(...finite)];
  return from === to ? [0, 1] : [from, to];
}

function Numbers({ view: { models, measures } }: { view: EvaluationView }) {
  const rows = measures.map(({ label, values }) => ({ key: label, name: label, cells: values.map(estimate) }));
  const counts = models.map(({ attempts, failed }) => `${attempts}, ${failed}`);
  return (
    <PlainTable
      label="Numbers"
      names="measure"
      columns={models.map(({ model }) => ({ key: model }))}
      rows={[...rows, { key: 'attempts, failed', name: 'attempts, failed', cells: counts }]}
    />
  );
}

function estimate(value: Estimate | null) {
  if (value === null) return '–';
  const { mean, low, high } = value;
  return (
    <>
      {formatNumber(mean)}{' '}
      <span class="dim">
        {formatNumber(low)} to {formatNumber(high)}
      </span>
    </>
  );
}
