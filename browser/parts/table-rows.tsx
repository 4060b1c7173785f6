/** Head and rows of a table. */
import { navigate } from '../location.ts';
import type { TableColumn, TableSort } from './table-column.ts';
import { titleOf } from './small.tsx';

interface HeadProps<Row> {
  readonly columns: readonly TableColumn<Row>[];
  readonly template: string;
  readonly minWidth: string;
  readonly sort: TableSort | null;
  readonly sortable: readonly string[] | undefined;
  readonly onSort: (sort: TableSort) => void;
}

export function TableHead<Row>({ columns, template, minWidth, sort, sortable, onSort }: HeadProps<Row>) {
  return (
    <div class="table-head" role="rowgroup" style={{ minWidth }}>
      <div class="table-row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map(({ key, label, value, align = 'start', title = titleOf(label) }) => {
          const isBy = sort?.key === key;
          const isSortable = sortable === undefined ? value !== undefined : sortable.includes(key);
          const direction = isBy ? (sort.isDescending ? 'descending' : 'ascending') : undefined;
          return (
            <div key={key} role="columnheader" class={`cell ${align}`} aria-sort={direction} title={title}>
              {isSortable ? (
                <button
                  type="button"
                  class="sort"
                  onClick={() => onSort({ key, isDescending: isBy ? !sort.isDescending : true })}
                >
                  {label}
                  {isBy && <span aria-hidden="true">{sort.isDescending ? '↓' : '↑'}</span>}
                </button>
              ) : (
                label
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface TableRowProps<Row> {
  readonly row: Row | undefined;
  readonly index: number;
  readonly start: number;
  readonly rowHeight: number;
  readonly template: string;
  readonly columns: readonly TableColumn<Row>[];
  readonly linkOf: ((row: Row) => string | null) | undefined;
  readonly isCurrent: boolean;
  readonly classOf: ((row: Row) => string) | undefined;
  readonly isSelected: ((row: Row) => boolean) | undefined;
  readonly onFocus: () => void;
}

export function TableRow<Row>(props: TableRowProps<Row>) {
  const { row, index, columns, linkOf } = props;
  const link = row === undefined ? null : linkOf?.(row);
  const extra = (row === undefined ? undefined : props.classOf?.(row)) ?? '';
  return (
    <div
      class={`table-row ${typeof link === 'string' ? 'is-linked' : ''} ${extra}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={row === undefined ? undefined : props.isSelected?.(row)}
      data-index={index}
      tabIndex={props.isCurrent ? 0 : -1}
      style={{
        gridTemplateColumns: props.template,
        height: `${props.rowHeight}px`,
        transform: `translateY(${props.start}px)`,
      }}
      onFocus={props.onFocus}
      onClick={(event) => {
        if (typeof link === 'string' && isPlainClick(event)) navigate(link);
      }}
    >
      {columns.map(({ key, align = 'start', render }, column) => (
        <div key={key} role="gridcell" class={`cell ${align}`} onPointerEnter={tellClipped}>
          {row === undefined ? (
            <span class="missing">…</span>
          ) : column === 0 && typeof link === 'string' ? (
            <a href={`#${link}`} tabIndex={-1}>
              {render(row)}
            </a>
          ) : (
            render(row)
          )}
        </div>
      ))}
    </div>
  );
}

/** What has no room in its cell is its title. */
function tellClipped({ currentTarget: cell }: { currentTarget: HTMLElement }): void {
  const parts = [cell, ...cell.querySelectorAll<HTMLElement>('*')];
  const isClipped = parts.some(({ clientWidth, scrollWidth }) => clientWidth > 0 && scrollWidth > clientWidth);
  cell.title = isClipped ? cell.textContent : '';
}

/** Neither on something that takes clicks itself, nor to select text or open another tab. */
function isPlainClick(event: MouseEvent): boolean {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return false;
  if ((event.target as Element).closest('a, button, input, label, select, summary') !== null) return false;
  return getSelection()?.isCollapsed !== false;
}
