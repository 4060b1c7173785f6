/** Keys of a table: which row is the current one. */
import { useMemo, useState } from 'preact/hooks';
import { navigate } from '../location.ts';
import { useKeys } from './keys.ts';

interface MovesOptions<Row> {
  readonly rows: readonly (Row | undefined)[];
  readonly keyOf: (row: Row) => string;
  readonly linkOf: ((row: Row) => string | null) | undefined;
  readonly scroller: { readonly current: HTMLElement | null };
  readonly rowHeight: number;
  readonly show: (index: number) => void;
}

interface RowMoves {
  readonly at: number;
  readonly setCurrent: (index: number) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

export function useRowMoves<Row>({ rows, keyOf, linkOf, scroller, rowHeight, show }: MovesOptions<Row>): RowMoves {
  const [current, setCurrentRow] = useState<{ readonly index: number; readonly key: string | null }>({
    index: 0,
    key: null,
  });
  // The row stays the current one where others are put before it.
  const at = useMemo(() => findCurrent(rows, keyOf, current), [rows, current]);
  const setCurrent = (index: number): void => {
    const row = rows[index];
    setCurrentRow({ index, key: row === undefined ? null : keyOf(row) });
  };
  const go = (next: number): void => {
    const index = Math.min(rows.length - 1, Math.max(0, next));
    setCurrent(index);
    show(index);
    focusRow(scroller.current, index);
  };
  const open = (): void => {
    const row = rows[at];
    const link = row === undefined ? null : linkOf?.(row);
    if (typeof link === 'string') navigate(link);
  };
  useKeys([
    { keys: 'j', label: 'Next row', run: () => go(isFocused(scroller.current) ? at + 1 : at) },
    { keys: 'k', label: 'Previous row', run: () => go(at - 1) },
  ]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 2);
    const next = nextRow(event.key, at, page, rows.length);
    const target = event.target as Element;
    const isRow = target.matches('[role=row]');
    if (next !== null) go(next);
    else if (event.key === 'Enter' && isRow) open();
    else if (event.key === ' ' && isRow) chooseRow(target);
    else return;
    event.preventDefault();
  };
  return { at, setCurrent, onKeyDown };
}

function findCurrent<Row>(
  rows: readonly (Row | undefined)[],
  keyOf: (row: Row) => string,
  { index, key }: { readonly index: number; readonly key: string | null },
): number {
  const isIt = (row: Row | undefined): boolean => row !== undefined && keyOf(row) === key;
  if (key !== null && !isIt(rows[index])) {
    const moved = rows.findIndex(isIt);
    if (moved !== -1) return moved;
  }
  return Math.min(index, Math.max(0, rows.length - 1));
}

/** Boxes of rows are no stops of the Tab key, which would be as many as there are rows. */
function chooseRow(row: Element): void {
  row.querySelector<HTMLInputElement>('input[type=checkbox]')?.click();
}

function nextRow(key: string, at: number, page: number, count: number): number | null {
  const moves: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + page,
    PageUp: at - page,
    Home: 0,
    End: count - 1,
  };
  return moves[key] ?? null;
}

const isFocused = (scroller: HTMLElement | null): boolean => scroller?.contains(document.activeElement) ?? false;

/** The row is in the document after the next frame at the latest. */
function focusRow(scroller: HTMLElement | null, index: number, tries = 3): void {
  requestAnimationFrame(() => {
    const row = scroller?.querySelector<HTMLElement>(`[data-index="${index}"]`);
    if (row) row.focus({ preventScroll: true });
    else if (tries > 0) focusRow(scroller, index, tries - 1);
  });
}
