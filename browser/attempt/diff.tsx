/** Conversations of two attempts beside each other, with the words in which they differ. */
import { useMemo, useState } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { alignBlocks, blocksOf, diffWords, type AlignedRow, type Block, type WordPart } from './align.ts';
import { LongText } from './message.tsx';

interface DiffProps {
  readonly left: AttemptView;
  readonly right: AttemptView;
  /** Heads of the columns; default: the attempts' own titles. */
  readonly titles?: readonly [left: string, right: string];
}

export function ConversationDiff({ left, right, titles = [left.title, right.title] }: DiffProps) {
  const rows = useMemo(() => alignBlocks(blocksOf(left.turns), blocksOf(right.turns)), [left, right]);
  const differing = rows.filter(({ isSame }) => !isSame).length;
  const [isOnlyDiffering, setOnlyDiffering] = useState(false);
  return (
    <section class="card diff" aria-label={`${titles[0]} and ${titles[1]} compared`}>
      <p class="diff-summary">
        {differing === 0
          ? 'The two conversations are the same.'
          : `${differing} of ${plural(rows.length, 'message')} differ.`}{' '}
        <label class="note">
          <input type="checkbox" checked={isOnlyDiffering} onChange={() => setOnlyDiffering(!isOnlyDiffering)} /> only
          what differs
        </label>
      </p>
      <table class="diff-table">
        <thead>
          <tr>
            <th scope="col">{titles[0]}</th>
            <th scope="col">{titles[1]}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (isOnlyDiffering && row.isSame ? null : <Row key={index} row={row} />))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ row: { left, right, isSame } }: { row: AlignedRow }) {
  const parts = useMemo(
    () => (isSame || left === null || right === null ? null : diffWords(left.text, right.text)),
    [left, right, isSame],
  );
  return (
    <tr class={isSame ? 'same' : 'differs'}>
      <Side block={left} parts={parts} kind="removed" />
      <Side block={right} parts={parts} kind="added" />
    </tr>
  );
}

interface SideProps {
  readonly block: Block | null;
  /** Null: there is nothing to compare with. */
  readonly parts: readonly WordPart[] | null;
  readonly kind: 'removed' | 'added';
}

/** Longer differences are shown as text: an element for each word would be too many. */
const MOST_PARTS = 3000;

function Side({ block, parts, kind }: SideProps) {
  if (block === null) return <td class="nothing" />;
  const own = parts?.filter((part) => part.kind === 'same' || part.kind === kind);
  const Mark = kind === 'added' ? 'ins' : 'del';
  return (
    <td>
      <span class="role">
        turn {block.turn + 1}, {block.role}
      </span>
      {own === undefined || own.length > MOST_PARTS ? (
        <LongText text={block.text} />
      ) : (
        <pre class="text" dir="auto">
          {own.map((part, index) =>
            part.kind === 'same' ? <span key={index}>{part.text}</span> : <Mark key={index}>{part.text}</Mark>,
          )}
        </pre>
      )}
    </td>
  );
}
