/** What the checkpoints of a run will take in its store, from the size of one of its own. */
import type { RunConfig, RunState, StepSummary } from '../../core/contract/contract.ts';
import { formatBytes } from '../../core/reports/format.ts';
import { sizeOf } from '../../store/records/runs/checkpoints.ts';
import { policiesOf } from '../../store/records/runs/manifest.ts';
import { KEPT_WHOLE, PRUNED_EVERY } from '../../store/records/retention/prune.ts';
import { isEnded, readCommit, readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';

/** Said while a run is young; later it can be seen. */
const YOUNG_STEPS = 3;

/** Null where there is nothing to say, or not yet. */
export async function describeDisk(
  store: Store,
  { state, steps }: { state: RunState | null; steps: readonly StepSummary[] },
): Promise<string | null> {
  const [first] = steps;
  if (state === null || first === undefined || state.step > YOUNG_STEPS || isEnded(state)) return null;
  const file = (await readRun(store, state.run))?.file;
  const commit = await readCommit(store, { run: state.run, branch: state.branch, step: first.step });
  if (commit === null || file === undefined || file.loop !== undefined) return null;
  const policies = policiesOf(commit.manifest).map(([, policy]) => policy);
  const size = {
    adapter: sizeOf(policies.map(({ adapter }) => adapter)),
    optimizer: sizeOf(policies.map(({ optimizer }) => optimizer)),
  };
  const { all, kept } = forecastDisk({ ...file.config, steps: state.steps }, size);
  const one = `each checkpoint takes ${formatBytes(size.adapter + size.optimizer)}`;
  if (file.config.keepAll) return `disk: ${one}, all ${formatBytes(all)}`;
  return `disk: ${one}, the run at most ${formatBytes(kept)} (${formatBytes(all)} with --keep-all)`;
}

/** Bytes of all checkpoints, and the most that are there at once under the retention of store/records/retention/prune.ts. */
export function forecastDisk(
  { steps, evalEvery }: Pick<RunConfig, 'steps' | 'evalEvery'>,
  { adapter, optimizer }: { readonly adapter: number; readonly optimizer: number },
): { all: number; kept: number } {
  const whole = adapter + optimizer;
  const all = (steps + 1) * whole;
  // Step 0, the newest and those since the last pruning stay whole, and the best evaluated one before them.
  const newest = KEPT_WHOLE + PRUNED_EVERY - 1;
  const evaluated = evalEvery === 0 ? 0 : Math.floor(Math.max(0, steps - KEPT_WHOLE) / evalEvery);
  const kept = (1 + newest + Math.min(1, evaluated)) * whole + Math.max(0, evaluated - 1) * adapter;
  return { all, kept: Math.min(all, kept) };
}
