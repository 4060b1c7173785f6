/** Rewards, scores and metrics of a group's attempts, a row for each. */
import { useState } from 'preact/hooks';
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { formatMetric } from './attempt-facts.tsx';
import { PlainTable } from '../parts/plain-table.tsx';

type Cell = number | string | boolean | null;

interface Column {
  readonly name: string;
  readonly of: (attempt: AttemptView) => Cell;
}

interface TableProps {
  readonly attempts: readonly AttemptView[];
  readonly hrefOf: (attempt: AttemptView) => string | null;
}

export function RewardTable({ attempts, hrefOf }: TableProps) {
  const [sort, setSort] = useState<{ readonly name: string; readonly isDown: boolean } | null>(null);
  const columns = columnsOf(attempts);
  const by = columns.find(({ name }) => name === sort?.name);
  const rows = by === undefined ? attempts : attempts.toSorted((a, b) => compare(by.of(a), by.of(b), sort!.isDown));
  const sortOf = (name: string) => (sort?.name !== name ? 'none' : sort.isDown ? 'descending' : 'ascending');
  return (
    <PlainTable
      label="Rewards and metrics"
      names="attempt"
      columns={columns.map(({ name }) => ({
        key: name,
        sort: sortOf(name),
        head: (
          <button
            type="button"
            class="sort"
            onClick={() => setSort({ name, isDown: sort?.name === name ? !sort.isDown : true })}
          >
            <bdi>{name}</bdi>
            <span aria-hidden="true">{SIGNS[sortOf(name)]}</span>
          </button>
        ),
      }))}
      rows={rows.map((attempt) => {
        const href = hrefOf(attempt);
        const name = href === null ? attempt.title : <a href={href}>{attempt.title}</a>;
        return { key: attempt.row.id, name, cells: columns.map(({ of }) => cellText(of(attempt))) };
      })}
    />
  );
}

const SIGNS = { none: '', descending: ' ↓', ascending: ' ↑' } as const;

function columnsOf(attempts: readonly AttemptView[]): Column[] {
  const names = (pick: (attempt: AttemptView) => object): string[] => [
    ...new Set(attempts.flatMap((attempt) => Object.keys(pick(attempt)))),
  ];
  const all: Column[] = [
    { name: 'reward', of: ({ row }) => row.reward },
    { name: 'advantage', of: ({ row }) => row.advantage },
    { name: 'before training', of: ({ before }) => before?.reward ?? null },
    ...names(({ scores }) => scores).map((name) => ({ name, of: ({ scores }: AttemptView) => scores[name] ?? null })),
    ...names(({ metrics }) => metrics).map((name) => ({
      name,
      of: ({ metrics }: AttemptView) => metrics[name] ?? null,
    })),
    { name: 'turns', of: ({ row }) => row.turns },
    { name: 'tokens', of: ({ row }) => row.sampledTokens },
    { name: 'seconds', of: ({ row }) => row.seconds },
    { name: 'truncated', of: ({ row }) => row.truncated || null },
    { name: 'failure', of: ({ row }) => row.failure },
  ];
  return all.filter(({ of }) => attempts.some((attempt) => of(attempt) !== null));
}

function cellText(cell: Cell): string {
  if (cell === null) return '–';
  return typeof cell === 'string' ? cell : formatMetric(cell);
}

/** Missing values come last in both directions. */
function compare(a: Cell, b: Cell, isDown: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === 'string' || typeof b === 'string' ? String(a).localeCompare(String(b)) : Number(a) - Number(b);
  return isDown ? -order : order;
}
