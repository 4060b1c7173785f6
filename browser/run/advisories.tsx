/** Advisories: what is wrong with a run, and what to do about it. */
import { formatSteps } from '../../core/reports/format.ts';
import { formatAttemptName } from '../attempt/places.ts';
import { pathTo } from '../location.ts';
import type { Advisory } from '../../views/api/run-views.ts';
import { Chip } from '../parts/small.tsx';

interface AdvisoriesProps {
  readonly run: string;
  readonly advisories: readonly Advisory[];
  /** True: one line that opens. */
  readonly isFolded: boolean;
}

export function Advisories({ run, advisories, isFolded }: AdvisoriesProps) {
  if (advisories.length === 0) return null;
  if (!isFolded) return <AdvisoryList run={run} advisories={advisories} />;
  return (
    <details class="folded-advisories">
      <summary>{advisories.length === 1 ? '1 advisory' : `${advisories.length} advisories`}</summary>
      <AdvisoryList run={run} advisories={advisories} />
    </details>
  );
}

function AdvisoryList({ run, advisories }: Omit<AdvisoriesProps, 'isFolded'>) {
  return (
    <section class="advisories" aria-label="Advisories">
      {advisories.map((advisory) => (
        <article key={advisory.kind + advisory.text} class={`card advisory ${advisory.level}`}>
          <Chip kind={advisory.level === 'alarm' ? 'bad' : 'warn'}>{advisory.level}</Chip>
          <div>
            <h2>{advisory.text}</h2>
            <p>{advisory.remedy}</p>
            <Evidence run={run} advisory={advisory} />
          </div>
        </article>
      ))}
    </section>
  );
}

function Evidence({ run, advisory: { steps, attempts } }: { run: string; advisory: Advisory }) {
  if (steps === null && attempts.length === 0) return null;
  return (
    <p class="links">
      {steps !== null && <a href={`#${attemptsOfSteps(run, steps[0], steps[1])}`}>Attempts of {formatSteps(steps)}</a>}
      {attempts.map((id) => (
        <a key={id} href={`#${pathTo('runs', run, 'attempts', id)}`}>
          {formatAttemptName(id)}
        </a>
      ))}
    </p>
  );
}

export function attemptsOfSteps(run: string, from: number, to: number): string {
  return `${pathTo('runs', run, 'attempts')}?fromStep=${from}&toStep=${to}`;
}
