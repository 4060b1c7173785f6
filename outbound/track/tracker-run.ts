/** A run as trackers name and describe it. A branch is a run of its own, which has the steps before it, too. */
import { hashOf } from '../../core/text/hashes.ts';
import type { Delivery } from '../target.ts';
import type { Store } from '../../store/store.ts';
import { bestEvaluation, metricsOfEvaluation, metricsOfRow, resultOf, type NamedMetrics } from './metric-names.ts';

/** `demo`, or `demo~1` on branch 1. */
export function shownName({ run, branch }: Pick<Delivery, 'run' | 'branch'>): string {
  return branch === 0 ? run.run : `${run.run}~${branch}`;
}

/** The same for every try, and another one for a run of the same name in another store. */
export function trackerRunId(delivery: Pick<Delivery, 'run' | 'branch'>): string {
  return `${shownName(delivery)}-${hashOf({ store: delivery.run.storeId, run: shownName(delivery) }).slice(0, 8)}`;
}

/** Settings of the run, as one object for a tracker's table. No path, no key: a run has none. */
export function describeConfig({ run, branch }: Delivery): Record<string, unknown> {
  const { config, agentCodeSha256 } = run;
  return {
    ...config,
    agent_code_sha256: agentCodeSha256,
    branch,
    ...(branch > 0 && { rolled_back_from: run.run }),
    ...(config.parent && { forked_from: `${config.parent.run}@${config.parent.step}` }),
  };
}

/** `{ a: { b: 1 } }` → `{ 'a.b': 1 }`; lists as JSON. */
export function flatten(value: Readonly<Record<string, unknown>>, prefix = ''): Record<string, string> {
  const entries = Object.entries(value).flatMap(([name, inner]): [string, string][] => {
    const key = `${prefix}${name}`;
    if (inner === null || inner === undefined) return [];
    if (typeof inner === 'object' && !Array.isArray(inner))
      return Object.entries(flatten(inner as Record<string, unknown>, `${key}.`));
    return [[key, typeof inner === 'string' ? inner : JSON.stringify(inner)]];
  });
  return Object.fromEntries(entries);
}

/** The surroundings of trackers; keys are in `env` alone. */
export interface TrackerPlace {
  readonly store: Store;
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof globalThis.fetch;
}

/** The result before and after, the newest value of each metric, the best evaluation: what the table of a tracker's runs shows. */
export function latestMetrics({ newest, evals }: Pick<Delivery, 'newest' | 'evals'>): NamedMetrics {
  const results = evals.map((each) => resultOf(each));
  const metrics = Object.assign({}, ...results, ...newest.map((row) => metricsOfRow(row))) as NamedMetrics;
  const best = bestEvaluation(evals);
  if (best === null) return metrics;
  return { ...metrics, 'best/val/reward': metricsOfEvaluation(best)['val/reward']! };
}
