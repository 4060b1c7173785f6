/** A scenario of an evaluation beside itself before training. */
import { formatNumber } from '../../core/format.ts';
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { useData } from '../data.ts';
import { Shown } from '../parts/small.tsx';
import { ConversationDiff } from './diff.tsx';

interface BeforeAfterProps {
  readonly run: string;
  /** Those that were played before training, too. */
  readonly attempts: readonly AttemptView[];
  /** Id of the shown one; null: the first. */
  readonly shown: string | null;
  readonly onShow: (id: string) => void;
}

export function BeforeAfter({ run, attempts, shown, onShow }: BeforeAfterProps) {
  const after = attempts.find(({ row }) => row.id === shown) ?? attempts[0]!;
  const { id } = after.before!;
  const before = useData<AttemptView>(`runs/${encodeURIComponent(run)}/attempts/${id}`);
  return (
    <>
      <p class="choice">
        <label class="note">
          Scenario{' '}
          <select value={after.row.id} onChange={(event) => onShow(event.currentTarget.value)}>
            {attempts.map((attempt) => (
              <option key={attempt.row.id} value={attempt.row.id}>
                {attempt.title}: {formatNumber(attempt.before?.reward)} → {formatNumber(attempt.row.reward)}
              </option>
            ))}
          </select>
        </label>
      </p>
      <Shown loaded={before} what={`attempt ${id}`}>
        {(view) => (
          <ConversationDiff left={view} right={after} titles={['before training', `after step ${after.row.step}`]} />
        )}
      </Shown>
    </>
  );
}
