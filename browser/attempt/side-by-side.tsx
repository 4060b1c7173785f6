/** Attempts of a group as columns, under heads that stay in sight; which ones, the reader chooses. What all prompts share stands above. */
import { useMemo } from 'preact/hooks';
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { AttemptView, MessageView } from '../../views/api/attempt-views.ts';
import { countShared } from './align.ts';
import { AttemptCard } from './attempt-card.tsx';
import { Message } from './message.tsx';

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
  const shared = useMemo(() => sharedMessages(attempts), [attempts]);
  return (
    <>
      {shared.length > 0 && <SharedPrompt messages={shared} />}
      {onShow !== null && attempts.length > 1 && <Choice {...{ attempts, shown, onShow, isShown }} />}
      <div class="attempts" tabIndex={0} role="region" aria-label={label}>
        {attempts.filter(isShown).map((attempt) => (
          <AttemptCard
            key={attempt.row.id}
            attempt={attempt}
            shared={shared.length}
            href={hrefOf(attempt)}
            beforeHref={beforeHrefOf?.(attempt)}
          />
        ))}
      </div>
    </>
  );
}

function sharedMessages(attempts: readonly AttemptView[]): readonly MessageView[] {
  const first = attempts.find(({ turns }) => turns.length > 0)?.turns[0];
  return first?.messages.slice(0, countShared(attempts)) ?? [];
}

/** Longer prompts are folded: the answers are what one looks for. */
const SHORT = { messages: 4, characters: 800 } as const;

function SharedPrompt({ messages }: { messages: readonly MessageView[] }) {
  const characters = messages.reduce((sum, { text }) => sum + text.length, 0);
  const isShort = messages.length <= SHORT.messages && characters <= SHORT.characters;
  return (
    <details class="card shared-prompt" open={isShort}>
      <summary>
        All prompts begin with {messages.length === 1 ? 'this message' : `these ${plural(messages.length, 'message')}`}
        {!isShort && (
          <span class="note">
            {' '}
            … <bdi>{messages.at(-1)!.text.slice(0, 300)}</bdi>
          </span>
        )}
      </summary>
      {messages.map((message, at) => (
        <Message key={at} message={message} />
      ))}
    </details>
  );
}

type ChoiceProps = Pick<SideBySideProps, 'attempts' | 'shown'> & {
  readonly onShow: NonNullable<SideBySideProps['onShow']>;
  readonly isShown: (attempt: AttemptView) => boolean;
};

function Choice({ attempts, shown, onShow, isShown }: ChoiceProps) {
  const toggle = (attempt: AttemptView): void => {
    const ids = attempts.filter((other) => (other === attempt) !== isShown(other)).map(({ row }) => row.id);
    onShow(ids.length === attempts.length || ids.length === 0 ? null : ids);
  };
  return (
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
  );
}
