/**
 * A system that a run is delivered to: a metric tracker, or an exporter of traces. Rows are delivered at least once, in
 * order, and by one process at a time; repeated rows have the same numbers and the same content.
 */
import type { EvalResult, RunConfig, StepSummary } from '../core/contract/contract.ts';
import type { RunOutcome } from '../store/records/production/outbound-cursor.ts';

export interface Target {
  readonly name: string;
  /** Most rows of one delivery. */
  readonly batch: number;
  /** After a rollback: deliver the new branch as a run of its own, from its first step, or only the steps after it. */
  readonly onRollback: 'restart' | 'continue';
  /** Opens the run, or a branch of it, or opens it again after its end. Returns what the target named it. */
  begin(delivery: Delivery): Promise<TargetMemory>;
  deliver(delivery: Delivery, rows: readonly DeliveryRow[]): Promise<void>;
  end(delivery: Delivery, outcome: RunOutcome): Promise<void>;
  /** Sent now and then while there is nothing to deliver, to a target that takes silence for a crash. */
  beat?(delivery: Delivery): Promise<void>;
}

/** Ids and addresses that the target gave, kept with its cursor: never a key. */
export type TargetMemory = Readonly<Record<string, string>>;

/** The run, or the branch of it, that is delivered, and what the target has of it. */
export interface Delivery {
  readonly run: RunFacts;
  readonly branch: number;
  /** Number of rows that the target has. */
  readonly rows: number;
  /** Answer of `begin`; empty before. */
  readonly memory: TargetMemory;
  /** The last step and the last evaluation up to the rows of this delivery. */
  readonly newest: readonly DeliveryRow[];
  /** All evaluations up to them. */
  readonly evals: readonly EvalResult[];
  /** Aborted when the worker ends. */
  readonly signal: AbortSignal;
}

/** Facts of a run that are known from its beginning. */
export interface RunFacts {
  readonly run: string;
  readonly storeId: string;
  readonly config: RunConfig;
  readonly agentCodeSha256: string;
  /** First run of the lineage that it was forked from; null: it was not forked. */
  readonly group: string | null;
  /** When its first checkpoint was made: milliseconds since 1970. */
  readonly beganAt: number;
  /** Last notes of the run and its failure, as they are now. */
  readonly failure: string | null;
}

interface RowPlace {
  /** From 0, in the order of delivery; by branch if the target has branches as runs of their own. */
  readonly number: number;
  readonly branch: number;
  readonly step: number;
  /** When it was committed: milliseconds since 1970, from the store. */
  readonly at: number;
}

export interface StepRow extends RowPlace {
  readonly kind: 'step';
  readonly summary: StepSummary;
  /** Sums over all steps of the run up to this one. */
  readonly totals: StepTotals;
}

export interface StepTotals {
  readonly seconds: number;
  readonly attempts: number;
  readonly sampledTokens: number;
}

export interface EvalRow extends RowPlace {
  readonly kind: 'evaluation';
  readonly result: EvalResult;
}

export type DeliveryRow = StepRow | EvalRow;
