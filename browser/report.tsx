/** The page of a report: draws charts and attempts into the places that the file has for them. */
import { render } from 'preact';
import type { ReportPageData, AttemptSet } from '../views/api/report-page.ts';
import { ChartCard } from './parts/chart.tsx';
import { useState } from 'preact/hooks';
import { plural } from '../core/reports/format.ts';
import type { GroupView } from '../views/api/attempt-views.ts';
import { RewardBars } from './attempt/attempt-card.tsx';
import { Judge } from './attempt/judge.tsx';
import { SideBySide } from './attempt/side-by-side.tsx';
import { UseChip } from './attempt/use-chip.tsx';

// Texts of models and agents arrive as data and are put on the page as text alone.
const data = JSON.parse(document.getElementById('data')!.textContent) as ReportPageData;

function drawCharts(place: HTMLElement): void {
  const charts = data.charts.filter(({ section }) => section === place.dataset['section']);
  render(
    <>
      {charts.map((chart) => (
        <ChartCard key={chart.title} chart={chart} isWide={chart === data.charts[0]} />
      ))}
    </>,
    place,
  );
}

for (const place of document.querySelectorAll<HTMLElement>('[data-section]')) {
  const folded = place.closest('details');
  // Folded parts have no width to draw into.
  if (folded === null || folded.open) drawCharts(place);
  else folded.addEventListener('toggle', () => drawCharts(place), { once: true });
}
const attemptsElement = document.getElementById('attempts');
if (attemptsElement !== null) render(<AttemptSets sets={data.attemptSets} />, attemptsElement);

/** Attempts of a report: a button for each step or evaluation, its groups side by side. */
function AttemptSets({ sets }: { sets: readonly AttemptSet[] }) {
  const first = Math.max(
    0,
    sets.findIndex(({ kind }) => kind === 'step'),
  );
  const [at, setAt] = useState(first);
  const shown = sets[at];
  if (shown === undefined) return <p class="dim">No attempts are recorded yet.</p>;
  return (
    <>
      <div class="choice picker" role="group" aria-label="Attempts of">
        {sets.map((set, index) => (
          <button key={index} type="button" aria-pressed={index === at} onClick={() => setAt(index)}>
            {set.label ?? (set.kind === 'eval' ? `eval after ${set.step}` : `step ${set.step}`)}
          </button>
        ))}
      </div>
      {shown.groups.map((group) => (
        <Group key={`${at} ${group.id}`} group={group} />
      ))}
      {shown.leftOut !== null && <p class="note">{shown.leftOut}; the store has all of them.</p>}
    </>
  );
}

function Group({ group }: { group: GroupView }) {
  const { title, scenario, row, attempts, judge, leftOut } = group;
  return (
    <section class="group" aria-label={title}>
      <header>
        <h3>
          <bdi>{title}</bdi>
        </h3>
        {scenario !== title && (
          <span class="dim">
            <bdi>{scenario}</bdi>
          </span>
        )}
        {row !== null && row.use !== 'trained' && <UseChip use={row.use} />}
        <RewardBars attempts={attempts} />
      </header>
      <SideBySide attempts={attempts} shown={null} onShow={null} hrefOf={() => null} label={`Attempts of ${title}`} />
      {leftOut > 0 && <p class="note">{plural(leftOut, 'attempt')} not shown; the store has them.</p>}
      {judge !== null && judge.questions.length > 0 && (
        <details class="folded">
          <summary>Judge</summary>
          <Judge judge={judge} titles={attempts.map((attempt) => attempt.title)} />
        </details>
      )}
    </section>
  );
}
