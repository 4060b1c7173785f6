/** A step in progress, with the facts of this step alone: several steps may be in progress. */
import type { Checkpoint, JudgeGroupResult, Usage } from '../core/contract/contract.ts';

/** The result of judging one or more groups. */
type JudgedPart = Pick<JudgeGroupResult, 'spent' | 'seconds'>;

export type StepPhase = 'rollout' | 'judge' | 'train';

export class StepInHand {
  readonly step: number;
  /** Results of its judge that are not counted yet: they are once the step is over. */
  readonly judgings: JudgedPart[] = [];
  /** Tokens of its attempts, once they are counted. */
  usage: Usage | undefined;
  /** The checkpoint that it samples from, if steps may overlap. */
  readonly policy: Checkpoint | null;
  /** The work and the queue that it waits for. */
  waiting: { work: string; queue: string } | null = null;
  readonly #beganAtMs = Date.now();
  readonly #seconds: Record<string, number> = {};
  #phase: StepPhase | 'wait' = 'rollout';
  #phaseBeganAtMs = this.#beganAtMs;

  constructor(step: number, policy: Checkpoint | null) {
    this.step = step;
    this.policy = policy;
  }

  /** `wait`: the step is played, and the step before it is still training. */
  get phase(): StepPhase | 'wait' {
    return this.#phase;
  }

  enter(phase: StepPhase, waiting: { work: string; queue: string }): void {
    this.#lap();
    this.#phase = phase;
    this.waiting = waiting;
  }

  rest(): void {
    this.#lap();
    this.#phase = 'wait';
  }

  /** Seconds of workflow time by phase and in total, the same on replay. For display only. */
  seconds(): Record<string, number> {
    this.#lap();
    return { ...this.#seconds, step: (Date.now() - this.#beganAtMs) / 1000 };
  }

  #lap(): void {
    this.#seconds[this.#phase] = (this.#seconds[this.#phase] ?? 0) + (Date.now() - this.#phaseBeganAtMs) / 1000;
    this.#phaseBeganAtMs = Date.now();
  }
}
