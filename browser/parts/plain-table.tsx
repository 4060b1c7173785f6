/** A table of a few rows: the first cell names its row. It scrolls by itself, also with the keyboard. */
import type { ComponentChildren } from 'preact';

interface PlainColumn {
  readonly key: string;
  readonly head?: ComponentChildren;
  /** Words wrap, and numbers stand at the right; default: a number. */
  readonly kind?: 'number' | 'words';
  /** Of a column whose head sorts it. */
  readonly sort?: 'none' | 'ascending' | 'descending';
}

interface PlainTableProps {
  readonly label: string;
  /** Head of the cells that name their rows. */
  readonly names: string;
  readonly columns: readonly PlainColumn[];
  /** A cell for each column. */
  readonly rows: readonly {
    readonly key: string;
    readonly name: ComponentChildren;
    readonly cells: readonly ComponentChildren[];
  }[];
  /** Shows all of its rows, however many. */
  readonly isTall?: boolean;
}

export function PlainTable({ label, names, columns, rows, isTall = false }: PlainTableProps) {
  return (
    <div class={isTall ? 'card scroll tall' : 'card scroll'} tabIndex={0} role="region" aria-label={label}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{names}</th>
            {columns.map(({ key, head = key, kind = 'number', sort }) => (
              <th key={key} scope="col" class={kind} aria-sort={sort}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, cells }) => (
            <tr key={key}>
              <th scope="row">{name}</th>
              {columns.map((column, at) => (
                <td key={column.key} class={column.kind ?? 'number'}>
                  {cells[at]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
