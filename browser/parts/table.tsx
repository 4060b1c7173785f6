/**
 * Table of any length: only the rows in sight are in the document. One tab stop; arrow keys move along the rows, Enter
 * opens one.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState, useLayoutEffect, useReducer, type MutableRef } from 'preact/hooks';
import { trackSizes, useSorted, type TableColumn, type TableSort } from './table-column.ts';
import { TableHead, TableRow } from './table-rows.tsx';
import { useRowMoves } from './table-moves.ts';
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly TableColumn<Row>[];
  /** All rows; a missing one is loaded later. */
  readonly rows: readonly (Row | undefined)[];
  readonly keyOf: (row: Row) => string;
  /** Path of a row's page. */
  readonly linkOf?: (row: Row) => string | null;
  readonly sort?: TableSort | null;
  /** The caller sorts; without it, the table does. */
  readonly onSort?: (sort: TableSort) => void;
  /** Columns that the caller can sort by; default: those with a value. */
  readonly sortable?: readonly string[];
  readonly rowHeight?: number;
  /** Class of a row. */
  readonly classOf?: (row: Row) => string;
  readonly isSelected?: (row: Row) => boolean;
  /** First and last index in sight. */
  readonly onRange?: (from: number, to: number) => void;
  readonly empty?: ComponentChildren;
}

export type { TableColumn } from './table-column.ts';

const ROW_HEIGHT = 34;

export function VirtualTable<Row>(props: TableProps<Row>) {
  const { label, columns, keyOf, rowHeight = ROW_HEIGHT } = props;
  const [ownSort, setOwnSort] = useState<TableSort | null>(props.sort ?? null);
  const isOwn = props.onSort === undefined;
  const rows = useSorted(props.rows, columns, isOwn ? ownSort : null);
  const scroller = useRef<HTMLDivElement>(null);
  const { items, total, show } = useVirtualRows(scroller, rows.length, rowHeight);
  const { at, setCurrent, onKeyDown } = useRowMoves({ rows, keyOf, linkOf: props.linkOf, scroller, rowHeight, show });
  useRange(items, rows.length, props.onRange);
  if (rows.length === 0 && props.empty !== undefined) return <div class="card">{props.empty}</div>;
  const { template, minWidth } = trackSizes(columns);
  return (
    <div
      class="table card"
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      ref={scroller}
      onKeyDown={onKeyDown}
    >
      <TableHead
        {...{ columns, template, minWidth }}
        sort={isOwn ? ownSort : (props.sort ?? null)}
        sortable={props.sortable}
        onSort={props.onSort ?? setOwnSort}
      />
      <div class="table-body" role="rowgroup" style={{ height: `${total}px`, minWidth }}>
        {items.map(({ index, start }) => (
          <TableRow
            key={keyAt(rows, index, keyOf)}
            {...{ index, start, rowHeight, template, columns }}
            row={rows[index]}
            linkOf={props.linkOf}
            classOf={props.classOf}
            isSelected={props.isSelected}
            isCurrent={index === at}
            onFocus={() => setCurrent(index)}
          />
        ))}
      </div>
    </div>
  );
}

function useRange(
  items: readonly { readonly index: number }[],
  count: number,
  onRange: ((from: number, to: number) => void) | undefined,
): void {
  const [from, to] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onRange?.(from, to), [from, to, count]);
}

function keyAt<Row>(rows: readonly (Row | undefined)[], index: number, keyOf: (row: Row) => string): string {
  const row = rows[index];
  return row === undefined ? `missing ${index}` : keyOf(row);
}

/** Rows above and below those in sight, so that fast scrolling finds them there. */
const OVERSCAN = 16;
const HEAD_HEIGHT = 32;

interface VirtualRows {
  readonly items: readonly { readonly index: number; readonly start: number }[];
  /** Height of all rows. */
  readonly total: number;
  /** Scrolls as little as it takes to have a row in sight. */
  readonly show: (index: number) => void;
}

/** The rows in sight of a scrolled element, by @tanstack/virtual-core. */
function useVirtualRows(scroller: MutableRef<HTMLDivElement | null>, count: number, rowHeight: number): VirtualRows {
  const [, rerender] = useReducer<number, void>((version) => version + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: OVERSCAN,
    // The head takes its height from what is scrolled.
    scrollPaddingEnd: HEAD_HEIGHT,
    onChange: () => rerender(),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtualizer.setOptions(options);
  // The library's adapters for other frameworks call these two.
  /* oxlint-disable no-underscore-dangle */
  useEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  /* oxlint-enable no-underscore-dangle */
  useLayoutEffect(() => virtualizer.measure(), [rowHeight]);
  return {
    items: virtualizer.getVirtualItems(),
    total: virtualizer.getTotalSize(),
    show: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
  };
}
