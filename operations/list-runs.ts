import { shortModelName } from '../core/reports/describe-config.ts';
import { formatDuration, formatNumber } from '../core/reports/format.ts';
import { formatUsd } from '../core/rules/judge-spending.ts';
import type { RunRow } from '../views/api/run-views.ts';
import { listRunRows } from '../views/runs/runs.ts';
import type { Lines, Place } from './operation.ts';
import type { FoundRuns } from './results.ts';

export async function findRuns(place: Place): Promise<FoundRuns> {
  const unreadable: { message: string }[] = [];
  const listing = {
    digestsWithinMs: Infinity,
    onUnreadable: ({ message }: Error) => void unreadable.push({ message }),
  };
  return { runs: await listRunRows({ store: await place.store(), now: Date.now }, listing), unreadable };
}

export function runLines({ runs, unreadable }: FoundRuns): Lines {
  if (runs.length === 0) return unreadable.length > 0 ? [] : ['no runs yet; start one with temper train AGENT'];
  const hasCosts = runs.some(({ usd }) => usd !== null);
  const head = ['run', 'agent', 'model', 'state', 'step', 'before', 'after', 'reward', 'time'];
  const rows = runs.map((row) => [
    row.run,
    row.agent,
    shortModelName(row.baseModel),
    row.state,
    `${row.step}/${row.steps}`,
    ...describeHeldOut(row),
    formatNumber(row.reward),
    formatDuration(row.wallSeconds),
    ...(hasCosts ? [row.usd === null ? '–' : `$${formatUsd(row.usd)}`] : []),
  ]);
  return [{ head: hasCosts ? [...head, 'cost'] : head, rows }];
}

/** Before the first step, and after the newest one that was evaluated. */
function describeHeldOut({ heldOut, step }: RunRow): [before: string, after: string] {
  if (heldOut === null) return ['–', '–'];
  const text = (value: number | null): string => `${formatNumber(value)} ${heldOut.label}`;
  if (heldOut.step === 0) return [text(heldOut.value), '–'];
  const before = heldOut.before === null ? '–' : text(heldOut.before);
  return [before, `${text(heldOut.value)}${heldOut.step === step ? '' : ` (at step ${heldOut.step})`}`];
}
