/** A run as its store has it now, for those who deliver it to others. Times come from the store, never from a clock. */
import type { Branch, EvalResult, RunState, StepSummary } from '../core/contract/contract.ts';
import { branchOfStep } from '../core/names/lineage.ts';
import { isEvaluationDue } from '../core/plan/evaluation.ts';
import { KEPT_EVALS } from '../core/plan/run-summary.ts';
import { evalTimesKey, manifestTimesKey, runKey, type StepPlace } from '../store/layout.ts';
import { extendCurve, readCurve } from '../store/records/runs/curve.ts';
import { ManifestTimesSchema, readStored, RunFileSchema, TimesFileSchema } from '../store/records/file-schemas.ts';
import { readEval, readState, type RunFile } from '../store/records/runs/run-reader.ts';
import type { Store } from '../store/store.ts';
import type { RunFacts, StepTotals } from './target.ts';

export interface RunSnapshot {
  readonly file: RunFile;
  readonly state: RunState;
  readonly branch: number;
  readonly lineage: readonly Branch[];
  /** All steps of the newest branch and of those before it, in order. */
  readonly steps: readonly StepSummary[];
  readonly evals: readonly EvalResult[];
}

/** Reads the curve only if the state has changed. */
export class SnapshotReader {
  readonly #store: Store;
  readonly #run: string;
  #last: RunSnapshot | null = null;
  #lastState = '';

  constructor(store: Store, run: string) {
    this.#store = store;
    this.#run = run;
  }

  /** Null until the run is prepared. */
  async read(): Promise<RunSnapshot | null> {
    const state = await readState(this.#store, this.#run);
    const file = this.#last?.file ?? (await readStored(this.#store, runKey(this.#run), RunFileSchema));
    if (state === null || file === null) return null;
    const text = JSON.stringify(state);
    if (this.#last !== null && text === this.#lastState) return this.#last;
    const { branch, lineage } = state;
    const known = this.#last?.branch === branch ? this.#last.steps : [];
    const steps = await (known.length === 0
      ? readCurve(this.#store, this.#run, state)
      : extendCurve(this.#store, this.#run, known, state));
    const evals = await readEvals(this.#store, file, state);
    this.#last = { file, state, branch, lineage, steps, evals };
    this.#lastState = text;
    return this.#last;
  }
}

/** A state keeps the first and the newest evaluations; the others of a long run are read one by one. */
async function readEvals(store: Store, file: RunFile, { run, evals, lineage }: RunState): Promise<EvalResult[]> {
  if (evals.length < KEPT_EVALS) return evals;
  const known = new Set(evals.map(({ step }) => step));
  const oldest = evals[1]?.step ?? 0;
  const others: EvalResult[] = [];
  for (let step = 1; step < oldest; step++) {
    if (known.has(step) || (file.loop === undefined && !isEvaluationDue(file.config, step))) continue;
    const result = await readEval(store, { run, branch: branchOfStep(lineage, step), step });
    if (result !== null) others.push(result);
  }
  return [...evals, ...others].toSorted((a, b) => a.step - b.step);
}

/** When a step was committed; null for one that trained nothing, and if the note is missing. */
export async function readCommitTime(store: Store, place: StepPlace): Promise<number | null> {
  const times = await readStored(store, manifestTimesKey(place), ManifestTimesSchema);
  return times === null ? null : Date.parse(times.committedAt);
}

export async function readEvalTime(store: Store, place: StepPlace): Promise<number | null> {
  return (await readStored(store, evalTimesKey(place), TimesFileSchema))?.endedAt ?? null;
}

export function totalsOf(steps: readonly StepSummary[]): StepTotals[] {
  let totals: StepTotals = { seconds: 0, attempts: 0, sampledTokens: 0 };
  return steps.map(({ seconds, attempts, sampledTokens }) => {
    totals = {
      seconds: totals.seconds + (seconds['step'] ?? 0),
      attempts: totals.attempts + attempts,
      sampledTokens: totals.sampledTokens + sampledTokens,
    };
    return totals;
  });
}

/** Facts that do not change, but for its failure. */
export async function readFacts(store: Store, { file, state }: RunSnapshot): Promise<RunFacts> {
  const { config, agentCodeSha256 } = file;
  return {
    run: config.run,
    storeId: await store.id(),
    config,
    agentCodeSha256,
    group: await findRoot(store, file),
    beganAt: (await readCommitTime(store, { run: config.run, branch: 0, step: 0 })) ?? 0,
    failure: state.failure,
  };
}

/** First run of a chain of forks; a parent that was deleted ends it. */
async function findRoot(store: Store, { parent }: RunFile): Promise<string | null> {
  let root: string | null = null;
  const seen = new Set<string>();
  let next = parent?.run ?? null;
  while (next !== null && !seen.has(next)) {
    seen.add(next);
    root = next;
    next = (await readStored(store, runKey(next), RunFileSchema))?.parent?.run ?? null;
  }
  return root;
}
