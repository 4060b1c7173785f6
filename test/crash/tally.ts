/** Adds up verdicts to the suite's last line. */
import type { Counts } from '../run/reports.ts';
import type { Verdict } from './row.ts';

export class Tally {
  readonly #verdicts: Verdict[] = [];

  add(verdict: Verdict): void {
    this.#verdicts.push(verdict);
  }

  counts(): Counts {
    const passed = this.#verdicts.filter(({ complaint }) => complaint === null).length;
    return { passed, failed: this.#verdicts.length - passed, skipped: 0 };
  }

  isGood(): boolean {
    return this.counts().failed === 0;
  }

  /** At random times. */
  kills(): number {
    return this.#verdicts.reduce((total, { kills = 0 }) => total + kills, 0);
  }

  summary() {
    const sum = (count: (verdict: Verdict) => number) => this.#verdicts.reduce((total, one) => total + count(one), 0);
    return {
      points: this.#verdicts.length,
      survived: sum(({ hasSurvived }) => Number(hasSurvived)),
      identical: sum(({ isIdentical }) => Number(isIdentical)),
      stepsCommittedTwice: sum((verdict) => verdict.stepsCommittedTwice),
      callsPaidTwice: sum((verdict) => verdict.callsPaidTwice),
      recoverySeconds: this.#recoveries(),
    };
  }

  #recoveries(): Record<string, { median: number; max: number }> {
    const all = this.#verdicts.flatMap(({ recoveries }) => recoveries);
    const names = [...new Set(all.map(({ process }) => process))].toSorted();
    return Object.fromEntries(
      names.map((name) => {
        const seconds = all.filter(({ process }) => process === name).map((recovery) => recovery.seconds);
        return [name, { median: tenths(median(seconds)), max: tenths(Math.max(...seconds)) }];
      }),
    );
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
