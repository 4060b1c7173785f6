/** Attempts of a group as columns, under heads that stay in sight; which ones, the reader chooses. */
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { formatNumber } from '../../core/format.ts';
import { AttemptCard } from './attempt-card.tsx';

interface SideBySideProps {
  readonly attempts: readonly AttemptView[];
  /** Ids of the shown ones; null: all. */
  readonly shown: readonly string[] | null;
  readonly onShow: ((ids: readonly string[] | null) => void) | null;
  readonly hrefOf: (attempt: AttemptView) => string | null;
  /** Address of a scenario beside itself before training. */
  readonly beforeHrefOf?: (attempt: AttemptView) => string;
  readonly label?: string;
}

export function SideBySide(props: SideBySideProps) {
  const { attempts, shown, onShow, hrefOf, beforeHrefOf, label = 'Attempts side by side' } = props;
  const isShown = ({ row }: AttemptView): boolean => shown === null || shown.includes(row.id);
  const toggle = (attempt: AttemptView): void => {
    const ids = attempts.filter((other) => (other === attempt) !== isShown(other)).map(({ row }) => row.id);
    onShow?.(ids.length === attempts.length || ids.length === 0 ? null : ids);
  };
  return (
    <>
      {onShow !== null && attempts.length > 1 && (
        <div class="choice columns" role="group" aria-label="Shown attempts">
          {attempts.map((attempt) => (
            <button
              key={attempt.row.id}
              type="button"
              aria-pressed={shown !== null && isShown(attempt)}
              onClick={() => (shown === null ? onShow([attempt.row.id]) : toggle(attempt))}
            >
              <span>
                <span class="visually-hidden">attempt </span>
                {attempt.row.attempt}
              </span>{' '}
              <span class="note">
                <span class="visually-hidden">reward </span>
                {formatNumber(attempt.row.reward)}
              </span>
            </button>
          ))}
          {shown !== null && (
            <button type="button" class="quiet" onClick={() => onShow(null)}>
              show all
            </button>
          )}
        </div>
      )}
      <div class="attempts" tabIndex={0} role="region" aria-label={label}>
        {attempts.filter(isShown).map((attempt) => (
          <AttemptCard
            key={attempt.row.id}
            attempt={attempt}
            href={hrefOf(attempt)}
            beforeHref={beforeHrefOf?.(attempt)}
          />
        ))}
      </div>
    </>
  );
}
