/** Columns of a table, and their order. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';

export interface TableColumn<Row> {
  readonly key: string;
  readonly label: string;
  /** Track of a CSS grid with its least width in pixels, `minmax(120px, 2fr)` or `40px`; default: `minmax(84px, 1fr)`. */
  readonly width?: string;
  readonly align?: 'start' | 'end';
  /** Sorts the rows; without it, the column is not sortable. */
  readonly value?: (row: Row) => string | number | null;
  readonly render: (row: Row) => ComponentChildren;
  /** Explains the column. */
  readonly title?: string;
}

export interface TableSort {
  readonly key: string;
  readonly isDescending: boolean;
}

/** Rows that are not loaded come last, as do those without a value. */
export function useSorted<Row>(
  rows: readonly (Row | undefined)[],
  columns: readonly TableColumn<Row>[],
  sort: TableSort | null,
): readonly (Row | undefined)[] {
  return useMemo(() => {
    const value = sort === null ? undefined : columns.find(({ key }) => key === sort.key)?.value;
    if (sort === null || value === undefined) return rows;
    const sign = sort.isDescending ? -1 : 1;
    const valueOf = (row: Row | undefined): string | number | null => (row === undefined ? null : value(row));
    return rows.toSorted((a, b) => {
      const [left, right] = [valueOf(a), valueOf(b)];
      if (left === null || right === null) return Number(left === null) - Number(right === null);
      return sign * compareValues(left, right);
    });
  }, [rows, sort?.key, sort?.isDescending]);
}

function compareValues(left: string | number, right: string | number): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  return String(left).localeCompare(String(right), 'en', { numeric: true });
}

/** Columns of the grid, and the width below which it scrolls. */
export function trackSizes(columns: readonly Pick<TableColumn<never>, 'width'>[]): {
  template: string;
  minWidth: string;
} {
  const tracks = columns.map(({ width = 'minmax(84px, 1fr)' }) => width);
  const pixels = tracks.map((track) => Number.parseFloat(/\b\d+(?:\.\d+)?px/.exec(track)?.[0] ?? '0'));
  return { template: tracks.join(' '), minWidth: `${pixels.reduce((sum, size) => sum + size, 0)}px` };
}
