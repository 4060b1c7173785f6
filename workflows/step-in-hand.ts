/** A step that was begun and is not finished: what is known of it alone, so that more than one may be in hand. */
import type { Checkpoint, JudgeGroupResult } from '../core/contract.ts';
import { NOT_JUDGED, type StepJudging } from '../core/run-summary.ts';

/** What judging one or more of its groups came to. */
export type JudgedPart = Pick<JudgeGroupResult, 'spent' | 'seconds'>;

export type StepPhase = 'rollout' | 'judge' | 'train';

export class StepInHand {
  readonly step: number;
  /** Of what its judge answered so far. */
  readonly judgings: JudgedPart[] = [];
  /** What judging it came to. */
  judged: StepJudging = NOT_JUDGED;
  /** What it samples from, where it may overlap with others. */
  readonly policy: Checkpoint | null;
  /** What it waits for, and where. */
  waiting: { work: string; queue: string } | null = null;
  readonly #beganAtMs = Date.now();
  readonly #seconds: Record<string, number> = {};
  #phase: StepPhase | 'wait' = 'rollout';
  #phaseBeganAtMs = this.#beganAtMs;

  constructor(step: number, policy: Checkpoint | null) {
    this.step = step;
    this.policy = policy;
  }

  /** `wait`: it was played, and the step before it is still training. */
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

  /** Of workflow time, by phase and in all; on replay they are those of the first time. For display only. */
  seconds(): Record<string, number> {
    this.#lap();
    return { ...this.#seconds, step: (Date.now() - this.#beganAtMs) / 1000 };
  }

  #lap(): void {
    this.#seconds[this.#phase] = (this.#seconds[this.#phase] ?? 0) + (Date.now() - this.#phaseBeganAtMs) / 1000;
    this.#phaseBeganAtMs = Date.now();
  }
}
