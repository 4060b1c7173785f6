/** A run as `runs` and `show` tell it: one flat object, made from the store alone. */
import type { EvalResult, RunState } from '../core/contract.ts';
import type { Run } from '../store/run-reader.ts';

/** An evaluation with its metrics beside its reward, so that a script reads `evalAfter.winRate`. */
export type FlatEval = Readonly<Record<string, number | string | null>>;

export interface RunSummary {
  readonly run: string;
  readonly agent: string;
  readonly baseModel: string;
  readonly state: RunState['state'] | 'starting';
  readonly phase: RunState['phase'] | null;
  readonly step: number;
  readonly steps: number;
  readonly reward: number | null;
  readonly waitingFor: string | null;
  readonly wallSeconds: number;
  readonly adapterSha256: string | null;
  readonly failure: string | null;
  readonly notes: readonly string[];
  readonly storeUri: string;
  readonly result: { readonly evalBefore: EvalResult | null; readonly evalAfter: EvalResult | null };
}

export function summariseRun({ file, state }: Run, storeUri: string): RunSummary {
  const { config } = file;
  return {
    run: config.run,
    agent: config.agent,
    baseModel: config.baseModel,
    state: state?.state ?? 'starting',
    phase: state?.phase ?? null,
    step: state?.step ?? 0,
    steps: config.steps,
    reward: state?.reward ?? null,
    waitingFor: state?.waitingFor ?? null,
    wallSeconds: state?.wallSeconds ?? 0,
    adapterSha256: state?.adapterSha256 ?? null,
    failure: state?.failure ?? null,
    notes: state?.notes ?? [],
    storeUri,
    result: { evalBefore: state?.evalBefore ?? null, evalAfter: state?.evalAfter ?? null },
  };
}

export function flattenEval(evaluation: EvalResult | null): FlatEval | null {
  if (evaluation === null) return null;
  const { metrics, step, attempts, failed, reward, rolloutsSha256 } = evaluation;
  // Its own fields win over a metric that happens to bear the same name.
  return { ...metrics, step, attempts, failed, reward, rolloutsSha256 };
}
