/** Facts of attempts that become spans: read from the store, with nothing of the clock in it. */
import type { TimesFile } from '../../store/records/file-schemas.ts';
import type { AttemptRecord, Judged } from '../../store/records/groups/trajectories.ts';

/** The run, as each span of it is marked. */
export interface TracedRun {
  readonly storeId: string;
  readonly run: string;
  readonly agent: string;
  readonly agentCodeSha256: string;
  readonly baseModel: string;
  readonly content: boolean;
  readonly maxTextLength: number;
}

/** A group of a step, or the held-out scenarios of an evaluation. */
export interface TracedGroup {
  readonly branch: number;
  readonly step: number;
  /** Null: an evaluation. */
  readonly group: number | null;
  /** Checkpoint that played, such as `demo@3`; null if no manifest names it. */
  readonly policy: string | null;
  readonly adapterSha256: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly judged: Judged | null;
  readonly scenarioId: string | null;
  readonly scenario: number | null;
  /** `trained`, or why it carries no signal; null if it is not known. */
  readonly use: string | null;
  readonly times: TimesFile | null;
  /** When its step, or the evaluation, was over: milliseconds since 1970. */
  readonly over: number;
}

/** Rewards by attempt: those of the verdict, or of the agent where nobody judged. */
export function rewardsOf({ attempts, judged }: Pick<TracedGroup, 'attempts' | 'judged'>): (number | null)[] {
  return attempts.map(({ reward, status }, index) => {
    if (status === 'failed') return null;
    return judged === null ? reward : (judged.rewards[index] ?? null);
  });
}
