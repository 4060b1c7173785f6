/** Run as `runs` and `show` print it: one flat object from the store. */
import type { EvalResult, RunCosts, RunState } from '../../core/contract/contract.ts';
import { findHeldOutLoss, type HeldOutLoss } from '../../views/charts/held-out.ts';
import { NOT_STEERED } from '../../core/names/lineage.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { warnOfTraining } from '../../core/reports/training-warnings.ts';
import type { StoredRun } from '../../store/records/runs/run-reader.ts';

/** Evaluation with metrics beside the reward, so that a script reads `evalAfter.winRate`. */
export type FlatEval = Readonly<Record<string, number | string | null>>;

export interface RunSummary {
  readonly run: string;
  readonly agent: string;
  readonly baseModel: string;
  /** Checkpoint that it started from, as `run@step`; null for a new adapter. */
  readonly parent: string | null;
  readonly state: RunState['state'] | 'starting';
  readonly phase: RunState['phase'] | null;
  readonly step: number;
  readonly steps: number;
  readonly branch: number;
  readonly lineage: RunState['lineage'];
  readonly pause: RunState['pause'];
  readonly changes: RunState['changes'];
  readonly reward: number | null;
  /** Null if the agent's own reward is the verdict. */
  readonly judge: string | null;
  readonly judging: RunState['judging'];
  /** Time, tokens and money; null for a run that does not tell them. */
  readonly costs: RunCosts | null;
  readonly waitingFor: string | null;
  readonly wallSeconds: number;
  readonly adapterSha256: string | null;
  readonly failure: string | null;
  readonly notes: readonly string[];
  /** Warnings of the newest steps, with what to change. */
  readonly warnings: readonly string[];
  readonly storeUri: string;
  /** Held-out loss of supervised steps; null if there are none. */
  readonly heldOutLoss: HeldOutLoss | null;
  readonly result: { readonly evalBefore: EvalResult | null; readonly evalAfter: EvalResult | null };
}

/** State of a run that has not recorded anything yet. */
const STARTING = {
  state: 'starting',
  phase: null,
  step: 0,
  reward: null,
  waitingFor: null,
  wallSeconds: 0,
  adapterSha256: null,
  failure: null,
  notes: [],
  evalBefore: null,
  evalAfter: null,
  branch: 0,
  ...NOT_STEERED,
} as const;

export function summariseRun({ file, state, steps }: StoredRun, storeUri: string): RunSummary {
  const { run, agent, baseModel, parent } = file.config;
  const { evalBefore, evalAfter, ...known } = state ?? STARTING;
  return {
    run,
    agent,
    baseModel,
    parent: parent ? policyName(parent) : null,
    state: known.state,
    phase: known.phase,
    step: known.step,
    steps: state?.steps ?? file.config.steps,
    branch: known.branch,
    lineage: known.lineage,
    pause: known.pause,
    changes: known.changes,
    reward: known.reward,
    judge: file.config.judge ?? null,
    judging: known.judging,
    costs: state?.costs ?? null,
    waitingFor: known.waitingFor,
    wallSeconds: known.wallSeconds,
    adapterSha256: known.adapterSha256,
    failure: known.failure,
    notes: known.notes,
    warnings: warnOfTraining(steps, state?.evals).map(({ text }) => text),
    storeUri,
    heldOutLoss: findHeldOutLoss(steps),
    result: { evalBefore, evalAfter },
  };
}

export function flattenEval(evaluation: EvalResult | null): FlatEval | null {
  if (evaluation === null) return null;
  const { metrics, step, attempts, failed, reward, rolloutsSha256 } = evaluation;
  // Own fields override a metric of the same name.
  return { ...metrics, step, attempts, failed, reward, rolloutsSha256 };
}
