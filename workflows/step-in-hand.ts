/** A step that was begun and is not finished: what is known of it alone, so that more than one may be in hand. */
import type { JudgeGroupResult } from '../core/contract.ts';

export type StepPhase = 'rollout' | 'judge' | 'train';

export class StepInHand {
  readonly step: number;
  /** What its judge answered so far, group by group. */
  readonly judged: JudgeGroupResult[] = [];
  readonly #beganAtMs = Date.now();
  readonly #seconds: Record<string, number> = {};
  #phase: StepPhase = 'rollout';
  #phaseBeganAtMs = this.#beganAtMs;

  constructor(step: number) {
    this.step = step;
  }

  get phase(): StepPhase {
    return this.#phase;
  }

  enter(phase: StepPhase): void {
    this.#lap();
    this.#phase = phase;
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
