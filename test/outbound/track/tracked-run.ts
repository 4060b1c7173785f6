/** A run in a store that grows step by step, as its workflow and its GPU worker write it, and one who delivers it to a target. */
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Branch, EvalResult, RunState, StepSummary } from '../../../core/contract/contract.ts';
import { planLineage } from '../../../core/names/lineage.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { newRunState } from '../../../core/plan/run-summary.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { SnapshotReader } from '../../../outbound/run-snapshot.ts';
import type { Target } from '../../../outbound/target.ts';
import { deliverNext } from '../../../outbound/deliver-run.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { manifestTimesKey, runKey, stateKey } from '../../../store/layout.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import type { RunOutcome } from '../../../store/records/production/outbound-cursor.ts';
import { evaluation, summary } from '../../cli/fixture-store.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

export const BEGAN_AT = Date.parse('2026-11-27T08:00:00Z');

export interface TrackedRun {
  readonly folder: string;
  readonly store: FileStore;
  readonly run: string;
  readonly state: RunState;
  /** The steps of the run as it is now. */
  readonly steps: StepSummary[];
  step(change?: Partial<StepSummary>): Promise<void>;
  evaluate(step?: number): Promise<EvalResult>;
  rollBack(fromStep: number): Promise<void>;
  set(state: Partial<RunState>): Promise<void>;
}

export async function startTrackedRun(run = 'demo'): Promise<TrackedRun> {
  const folder = temporaryFolder();
  const store = new FileStore(join(folder, 'store'));
  const config = defaultRunConfig({ run, agent: 'tic-tac-toe', baseModel: 'pocket', steps: 60 });
  await store.publish(
    runKey(run),
    encodeJson({ schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: { temper: '0.1.0' }, parent: null }),
  );
  let state = newRunState(config);
  const branches: Branch[] = [];
  let steps: StepSummary[] = [];
  const write = async (change: Partial<RunState>): Promise<void> => {
    state = { ...state, ...change };
    await store.replace(stateKey(run), encodeJson(state));
  };
  const commit = (step: number): Promise<void> => {
    const committedAt = new Date(BEGAN_AT + step * 1000).toISOString();
    return store.replace(manifestTimesKey({ run, branch: state.branch, step }), encodeJson({ committedAt }));
  };
  await commit(0);
  await write({});
  return {
    folder,
    store,
    run,
    get state() {
      return state;
    },
    get steps() {
      return steps;
    },
    async step(change = {}) {
      const step = state.step + 1;
      const line = { ...summary(step, 60), ...change };
      await commit(step);
      await addToCurve(store, run, { branch: state.branch, step }, [line], () => undefined);
      steps = [...steps, line];
      await write({ step, reward: line.reward });
    },
    async evaluate(step = state.step) {
      const result = evaluation(step, 0.5 + step / 200, 0.1);
      await write({ evals: [...state.evals, result] });
      return result;
    },
    async rollBack(fromStep) {
      const branch = state.branch + 1;
      branches.push({ branch, fromBranch: state.branch, fromStep });
      steps = steps.filter(({ step }) => step <= fromStep);
      const evals = state.evals.filter(({ step }) => step <= fromStep);
      await write({ branch, lineage: planLineage(branches, branch), step: fromStep, evals });
    },
    set: write,
  };
}

export interface Deliveries {
  readonly outcome?: RunOutcome | null;
  readonly from?: 'start' | 'now';
  /** Tries that may fail. */
  readonly tries?: number;
}

/** Tells all that is new, as the activity and its retries do. Returns the failures on the way. */
export async function deliverAll(tracked: TrackedRun, target: Target, options: Deliveries = {}): Promise<Error[]> {
  const { outcome = null, from = 'start', tries = 200 } = options;
  const failures: Error[] = [];
  const scope = { store: tracked.store, signal: new AbortController().signal, checkFresh: () => undefined };
  while (failures.length <= tries) {
    try {
      const snapshot = await new SnapshotReader(tracked.store, tracked.run).read();
      if (snapshot === null || !(await deliverNext(target, snapshot, { outcome, from }, scope))) return failures;
    } catch (error) {
      if (!(error instanceof TemperError)) throw error;
      failures.push(error);
      if (failures.length > tries) throw error;
    }
  }
  return failures;
}

/** Of evaluations before training and after step 12, as the terminal says it. */
const RESULT = {
  'after/step': 12,
  'after/win': 0.56,
  'after/win_high': expect.closeTo(0.627, 3) as number,
  'after/win_low': expect.closeTo(0.491, 3) as number,
  'before/win': 0.5,
  'before/win_high': expect.closeTo(0.569, 3) as number,
  'before/win_low': expect.closeTo(0.431, 3) as number,
};

/** A tracker shows names in their order; those with a line in front are its own. */
export function expectResultFirst(newest: Readonly<Record<string, unknown>>): void {
  const names = Object.keys(newest).filter((name) => !name.startsWith('_'));
  expect(names.toSorted().slice(0, 7)).toEqual(Object.keys(RESULT));
  expect(newest).toMatchObject(RESULT);
}
