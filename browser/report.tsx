/** The page of a report: draws charts and attempts into the places that the file has for them. */
import { render } from 'preact';
import type { ReportPageData } from '../views/api/report-page.ts';
import { AttemptSets } from './attempt/attempt-sets.tsx';
import { ChartCard } from './parts/chart.tsx';

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
const attempts = document.getElementById('attempts');
if (attempts !== null) render(<AttemptSets sets={data.attemptSets} />, attempts);
