/** Attempts of a report: a button for each step or evaluation, its groups side by side. */
import { useState } from 'preact/hooks';
import { plural } from '../../core/format.ts';
import type { GroupView } from '../../views/api/attempt-views.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import { RewardBars } from './attempt-card.tsx';
import { Judge } from './judge.tsx';
import { SideBySide } from './side-by-side.tsx';
import { UseChip } from './use-chip.tsx';

export function AttemptSets({ sets }: { sets: readonly AttemptSet[] }) {
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
