/** Frame of a table with a row for each attempt; it scrolls by itself, also with the keyboard. */
import type { ComponentChildren } from 'preact';

interface FactsTableProps {
  readonly label: string;
  /** Heads of the columns after the attempt's. */
  readonly heads: ComponentChildren;
  /** Rows. */
  readonly children: ComponentChildren;
}

export function FactsTable({ label, heads, children }: FactsTableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="facts-table">
        <thead>
          <tr>
            <th scope="col">attempt</th>
            {heads}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
