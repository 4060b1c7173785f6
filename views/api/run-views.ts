/**
 * A store as `temper ui`, `temper mcp` and scripts see it, in JSON. Each type names the path that answers it, below
 * `/api/`. Missing values are `null`; times are ISO 8601 in UTC, durations are seconds, money is US dollars.
 */
import type { EvalResult, RunConfig, RunState, SettingChange, StepSummary } from '../../core/contract/contract.ts';
import type { ReviewAgreement } from '../../core/numbers/agreement.ts';

export type RunStateName = RunState['state'] | 'starting';

/** `runs`: one row each, newest first. */
export interface RunRow {
  readonly run: string;
  readonly agent: string;
  readonly baseModel: string;
  readonly state: RunStateName;
  readonly step: number;
  readonly steps: number;
  readonly reward: number | null;
  /** Headline of the newest evaluation and of the one before the first step, or the `loss` on held-out chats; null: none. */
  readonly heldOut: {
    readonly label: string;
    readonly value: number | null;
    readonly before: number | null;
    readonly step: number;
  } | null;
  /** At most 60 rewards of steps, evenly spaced, first and last included. */
  readonly sparkline: readonly (number | null)[];
  readonly waitingFor: string | null;
  readonly waitingSince: string | null;
  readonly updatedAt: string | null;
  readonly wallSeconds: number;
  /** Null if nothing has a price. */
  readonly usd: number | null;
  /** Rewards from outside that it waits for. */
  readonly awaited: number;
  /** Host of the worker that played its newest group; null if it is not recorded. */
  readonly host: string | null;
  readonly advisories: number;
  readonly parent: string | null;
}

export interface Advisory {
  readonly kind:
    | 'stalled'
    | 'aborts'
    | 'no-variance'
    | 'truncation'
    | 'entropy'
    | 'dominant-reward'
    | 'reward-against-goal'
    | 'same-answer'
    | 'lost-class'
    | 'goal-unmoved'
    | 'length-drift'
    | 'constant-reward'
    | 'drift'
    | 'mismatch'
    | 'row-by-row'
    | 'unused-role';
  /** `alarm`: the run is not making progress. `advice`: it could be better. Alarms come first. */
  readonly level: 'alarm' | 'advice';
  /** Finding, with the numbers that were measured. */
  readonly text: string;
  readonly remedy: string;
  /** Steps that show it, first to last; null if it is no matter of steps. */
  readonly steps: readonly [number, number] | null;
  /** Attempts to look at. */
  readonly attempts: readonly string[];
}

/** A branch of a run's lineage, or of a fork. */
export interface LineageNode {
  /** `demo` branch 0 is `demo/0`. */
  readonly id: string;
  readonly run: string;
  readonly branch: number;
  /** Node and step that it continues; null for a run that began anew. */
  readonly from: { readonly id: string; readonly step: number } | null;
  /** The last step of it. */
  readonly step: number;
  readonly state: RunStateName;
}

/** `runs/RUN` */
export interface RunView {
  readonly row: RunRow;
  readonly state: RunState | null;
  readonly config: RunConfig;
  /** Versions of Temper, Node and packages that started it. */
  readonly versions: Readonly<Record<string, string>>;
  /** All changes by `temper set`, in order. */
  readonly changes: readonly SettingChange[];
  readonly lineage: readonly LineageNode[];
  readonly advisories: readonly Advisory[];
  readonly trainScenarios: number | null;
  readonly evalScenarios: number | null;
  /** Number of held-out scenarios that those are a sample of. */
  readonly evalScenariosOf: number | null;
}

/** `runs/RUN/curve?after=STEP&branch=B`: lines after that step. Branch: default the newest with all before it. */
export interface CurveView {
  readonly run: string;
  readonly branch: number;
  readonly steps: readonly StepSummary[];
  readonly evals: readonly EvalResult[];
  /** Parts of the curve: the branch from this step on. */
  readonly parts: readonly { readonly branch: number; readonly fromStep: number }[];
  /** 95 % interval of the mean reward of each evaluation, by its step, as far as its attempts are indexed. */
  readonly evalRewards?: Readonly<Record<number, readonly [low: number, high: number]>>;
}

/** `runs/RUN/agreement` */
export interface AgreementView {
  /** Null unless people review the run. */
  readonly agreement: ReviewAgreement | null;
}

/** `compare?runs=A,B,…`: 2 to 6 runs. */
export interface CompareView {
  readonly curves: readonly CurveView[];
  /** Settings that differ, by the flag's name; a value for each run. */
  readonly settings: readonly { readonly setting: string; readonly values: readonly string[] }[];
}

/** `runs/RUN/lanes?from=STEP&to=STEP`: what happened when. */
export interface LanesView {
  readonly lanes: readonly {
    readonly name: 'rollout' | 'judge' | 'train' | 'eval' | 'wait';
    readonly spans: readonly LaneSpan[];
  }[];
}

export interface LaneSpan {
  readonly label: string;
  /** Null: the branch that the run is on. */
  readonly branch: number | null;
  readonly step: number | null;
  readonly group: number | null;
  readonly startedAt: string;
  /** Null: still in progress. */
  readonly endedAt: string | null;
  /** Attempt of the activity; above 1, it was retried. */
  readonly attempt: number;
  readonly host: string | null;
  readonly kind: 'work' | 'pause' | 'wait';
}

/** `runs/RUN/checkpoints` */
export interface CheckpointRow {
  readonly branch: number;
  readonly step: number;
  /** `demo@12`, as commands take it; null on a branch that was left. */
  readonly name: string | null;
  readonly adapterSha256: string;
  /** Of the weights that are there. */
  readonly bytes: number;
  /** `adapter`: without its optimizer state. */
  readonly weights: 'kept' | 'adapter' | 'pruned' | 'missing';
  readonly committedAt: string | null;
  readonly reward: number | null;
  readonly evaluation: EvalResult | null;
  readonly deployments: readonly ShownDeployment[];
  readonly isProduction: boolean;
}

interface ShownDeployment {
  readonly target: string;
  readonly state: 'running' | 'deployed' | 'failed';
  /** The stage that is next; null once it is deployed. */
  readonly stage: string | null;
  /** What the stage waits for, or why it failed. */
  readonly message: string | null;
  readonly at: string | null;
}
