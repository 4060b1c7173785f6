import Table from 'cli-table3';

const PLACES = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
].concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid']);

/** Plain table: columns two spaces apart, without lines, so that awk can cut it. */
export function createTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    chars: { ...Object.fromEntries(PLACES.map((place) => [place, ''])), middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  for (const row of rows) table.push([...row]);
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
