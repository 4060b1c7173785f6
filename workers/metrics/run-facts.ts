/** The facts in a run's files: its state, sums over its curve, and its newest steps. Unchanged files are not read again. */
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import { entropiesAtStart, WARNED_STEPS, type EntropyOfStep } from '../../core/reports/training-warnings.ts';
import { curvePrefix } from '../../store/layout.ts';
import { inCurveOrder, readCurveFile } from '../../store/records/runs/curve.ts';
import { readState, type RunFile } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { addTotals, sumSteps, STEP_COUNTERS, type Totals } from './step-counters.ts';

export interface MetricFacts {
  readonly config: RunFile['config'];
  readonly state: RunState;
  /** Over all branches: a rollback takes nothing back that was spent. */
  readonly totals: Totals;
  /** Oldest first; fewer after a rollback. */
  readonly newest: readonly StepSummary[];
  /** Entropies of the first steps that trained groups. */
  readonly firstEntropies: readonly EntropyOfStep[];
  /** Time at which the newest step was recorded; null: none was. */
  readonly recordedAtMs: number | null;
}

/** Steps over which medians and shares are taken. */
const NEWEST_STEPS = 20;

interface CurveFile {
  readonly modifiedAtMs: number;
  readonly bytes: number;
  readonly totals: Totals;
  readonly newest: readonly StepSummary[];
  readonly entropies: readonly EntropyOfStep[];
}

export class RunFactsReader {
  readonly #store: Store;
  readonly #config: RunFile['config'];
  #files = new Map<string, CurveFile>();
  #position: string | null = null;

  constructor(store: Store, config: RunFile['config']) {
    this.#store = store;
    this.#config = config;
  }

  /** Null before the run has recorded its first state. */
  async read(): Promise<MetricFacts | null> {
    const state = await readState(this.#store, this.#config.run);
    if (state === null) return null;
    const position = `${state.branch} ${state.step} ${state.adapterSha256}`;
    if (position !== this.#position) await this.#readCurve();
    this.#position = position;
    const files = inCurveOrder([...this.#files.keys()]).map((key) => this.#files.get(key)!);
    const newest = files.reduce<readonly StepSummary[]>((before, file) => {
      const first = file.newest[0]?.step ?? Infinity;
      return [...before.filter(({ step }) => step < first), ...file.newest];
    }, []);
    return {
      config: this.#config,
      state,
      totals: addTotals(
        files.map(({ totals }) => totals),
        STEP_COUNTERS,
      ),
      newest: newest.filter(({ step }) => step <= state.step).slice(-NEWEST_STEPS),
      firstEntropies: files.flatMap(({ entropies }) => entropies).slice(0, WARNED_STEPS),
      recordedAtMs: files.length === 0 ? null : Math.max(...files.map(({ modifiedAtMs }) => modifiedAtMs)),
    };
  }

  async #readCurve(): Promise<void> {
    const files = new Map<string, CurveFile>();
    for await (const { key, bytes, modifiedAtMs } of this.#store.describe(curvePrefix(this.#config.run))) {
      const known = this.#files.get(key);
      const isKnown = known?.bytes === bytes && known.modifiedAtMs === modifiedAtMs;
      files.set(key, isKnown ? known : { modifiedAtMs, bytes, ...(await this.#readFile(key)) });
    }
    this.#files = files;
  }

  async #readFile(key: string): Promise<Pick<CurveFile, 'totals' | 'newest' | 'entropies'>> {
    const steps = await readCurveFile(this.#store, key);
    return {
      totals: sumSteps(steps, STEP_COUNTERS),
      newest: steps.slice(-NEWEST_STEPS),
      entropies: entropiesAtStart(steps),
    };
  }
}
