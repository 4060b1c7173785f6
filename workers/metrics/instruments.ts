/** Counters and histograms of one process. Their labels are bounded: never a scenario or an attempt. */
import type { Family, Labels, Sample } from './exposition.ts';

export interface Described {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Values of labels cannot have it: they are names, statuses and operations. */
const BETWEEN = '\u0000';

export class Counter {
  readonly #described: Described;
  readonly #values = new Map<string, number>();

  constructor(described: Described) {
    this.#described = described;
  }

  add(labels: readonly string[], amount = 1): void {
    const key = labels.join(BETWEEN);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  family(): Family {
    const { name, help, labels } = this.#described;
    const samples = [...this.#values].map(([key, value]) => ({ labels: labelled(labels, key), value }));
    return { name, type: 'counter', help, samples };
  }
}

interface Observed {
  readonly counts: number[];
  sum: number;
}

export class Histogram {
  readonly #described: Described;
  readonly #bounds: readonly number[];
  readonly #observed = new Map<string, Observed>();

  /** `bounds`: upper ones, ascending. */
  constructor(described: Described, bounds: readonly number[]) {
    this.#described = described;
    this.#bounds = bounds;
  }

  observe(labels: readonly string[], value: number): void {
    const key = labels.join(BETWEEN);
    const known = this.#observed.get(key);
    const observed = known ?? { counts: Array.from<number>({ length: this.#bounds.length + 1 }).fill(0), sum: 0 };
    if (known === undefined) this.#observed.set(key, observed);
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const index = found === -1 ? this.#bounds.length : found;
    observed.counts[index] = (observed.counts[index] ?? 0) + 1;
    observed.sum += value;
  }

  family(): Family {
    const { name, help, labels } = this.#described;
    const samples = [...this.#observed].flatMap(([key, observed]) => this.#samples(labelled(labels, key), observed));
    return { name, type: 'histogram', help, samples };
  }

  #samples(labels: Labels, { counts, sum }: Observed): Sample[] {
    let total = 0;
    const buckets = counts.map((count, index): Sample => {
      total += count;
      const le = index < this.#bounds.length ? String(this.#bounds[index]) : '+Inf';
      return { suffix: '_bucket', labels: { ...labels, le }, value: total };
    });
    return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
  }
}

function labelled(names: readonly string[], key: string): Labels {
  const values = key.split(BETWEEN);
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}
