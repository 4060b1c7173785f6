/** A group on a page of several: its spread, and its attempts side by side. */
import { plural } from '../../core/reports/format.ts';
import type { AttemptView, GroupView } from '../../views/api/attempt-views.ts';
import { RewardBars } from './attempt-card.tsx';
import { Judge } from './judge.tsx';
import { SideBySide } from './side-by-side.tsx';
import { UseChip } from './use-chip.tsx';

interface GroupCardProps {
  readonly group: GroupView;
  /** Address of the group's own page; null where it has none. */
  readonly href: string | null;
  readonly hrefOf: (attempt: AttemptView) => string | null;
}

export function GroupCard({ group, href, hrefOf }: GroupCardProps) {
  const { title, scenario, row, attempts, judge, leftOut } = group;
  return (
    <section class="group-card" aria-label={title}>
      <header>
        <h3>{href === null ? <bdi>{title}</bdi> : <a href={href}>{title}</a>}</h3>
        {scenario !== title && (
          <span class="dim">
            <bdi>{scenario}</bdi>
          </span>
        )}
        {row !== null && row.use !== 'trained' && <UseChip use={row.use} />}
        <RewardBars attempts={attempts} />
      </header>
      <SideBySide attempts={attempts} shown={null} onShow={null} hrefOf={hrefOf} label={`Attempts of ${title}`} />
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
