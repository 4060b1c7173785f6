/** Metrics of runs, from what the store and the Temporal server know of them. `docs/metrics.md` lists the names. */
import { RUN_STATES, type Usage } from '../../core/contract/contract.ts';
import { mean, median } from '../../core/numbers/statistics.ts';
import type { Family, Labels, Sample } from './exposition.ts';
import type { MetricFacts } from './run-facts.ts';
import type { RunWaits } from './run-waits.ts';
import { sumSteps, ATTEMPTS, GROUPS, STEP_COUNTERS } from './step-counters.ts';

/** A run, with what it waits for; null: no Temporal server said. */
export interface WatchedRun {
  readonly facts: MetricFacts;
  readonly waits: RunWaits | null;
}

type Value = number | null | undefined;

interface RunMetric {
  /** After `temper_run_`. */
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** One value without further labels, or several with labels of their own. */
  readonly of: (run: WatchedRun) => Value | readonly (readonly [Labels, Value])[];
}

/** Steps of the gauges of shares, for alerts that do not depend on how long steps take. */
const RECENT_STEPS = 10;

const last = ({ facts: { newest } }: WatchedRun) => newest.at(-1);
const trained = (name: string) => (run: WatchedRun) => last(run)?.train[name];

const OF_STATE: readonly RunMetric[] = [
  {
    name: 'state',
    type: 'gauge',
    help: '1 for the state that the run is in.',
    of: ({ facts }) => RUN_STATES.map((state) => [{ state }, facts.state.state === state ? 1 : 0]),
  },
  { name: 'step', type: 'gauge', help: 'Last recorded step.', of: ({ facts }) => facts.state.step },
  { name: 'target_steps', type: 'gauge', help: 'Steps of the whole run.', of: ({ facts }) => facts.state.steps },
  {
    name: 'branch',
    type: 'gauge',
    help: 'Current branch; each rollback makes one.',
    of: ({ facts }) => facts.state.branch,
  },
  {
    name: 'last_step_timestamp_seconds',
    type: 'gauge',
    help: 'Unix time of the newest step.',
    of: ({ facts: { recordedAtMs } }) => (recordedAtMs === null ? null : recordedAtMs / 1000),
  },
  {
    name: 'median_step_seconds',
    type: 'gauge',
    help: 'Median time of the newest steps.',
    of: ({ facts }) => median(facts.newest.flatMap(({ seconds }) => seconds['step'] ?? [])),
  },
  {
    name: 'evaluation_reward',
    type: 'gauge',
    help: 'Mean held-out reward of the newest evaluation.',
    of: ({ facts }) => facts.state.evals.at(-1)?.reward,
  },
  {
    name: 'evaluation_step',
    type: 'gauge',
    help: 'Step of the newest evaluation.',
    of: ({ facts }) => facts.state.evals.at(-1)?.step,
  },
];

const OF_LAST_STEP: readonly RunMetric[] = [
  { name: 'reward', type: 'gauge', help: 'Mean reward of the last step.', of: (run) => last(run)?.reward },
  {
    name: 'metric',
    type: 'gauge',
    help: "Mean of an agent's metric over the last step.",
    of: (run) => Object.entries(last(run)?.metrics ?? {}).map(([metric, value]) => [{ metric }, value]),
  },
  { name: 'loss', type: 'gauge', help: 'Loss of the last step.', of: trained('loss') },
  { name: 'gradient_norm', type: 'gauge', help: 'Norm of the gradient before clipping.', of: trained('gradNorm') },
  { name: 'entropy', type: 'gauge', help: 'Entropy of the policy in nats per token.', of: trained('entropy') },
  {
    name: 'initial_entropy',
    type: 'gauge',
    help: 'Mean entropy of the first steps that trained groups.',
    of: ({ facts }) => mean(facts.firstEntropies.map(({ entropy }) => entropy)),
  },
  {
    name: 'logprob_k3',
    type: 'gauge',
    help: 'KL divergence of sampler and trainer, as k3 estimates it.',
    of: trained('logprobK3'),
  },
  {
    name: 'learning_rate',
    type: 'gauge',
    help: 'Learning rate of the last step.',
    of: (run) => last(run)?.learningRate,
  },
  ...[ATTEMPTS, GROUPS].map((counter): RunMetric => ({
    name: `recent_${counter.name}`,
    type: 'gauge',
    help: `Of the newest ${RECENT_STEPS} steps. ${counter.help}`,
    of: ({ facts }) =>
      labelled(counter.label, sumSteps(facts.newest.slice(-RECENT_STEPS), [counter]).get(counter.name) ?? []),
  })),
];

const OF_WAITS: readonly RunMetric[] = [
  {
    name: 'activities',
    type: 'gauge',
    help: 'Unfinished activities of the run, by state.',
    of: ({ waits }) => waits?.activities.map(({ activity, state, count }) => [{ activity, state }, count]),
  },
  {
    name: 'waiting_since_timestamp_seconds',
    type: 'gauge',
    help: 'Unix time since which the run waits, by reason.',
    of: ({ facts, waits }) =>
      [...waitsOfState(facts), ...(waits?.waits ?? [])].map(([what, at]) => [{ for: what }, at]),
  },
  {
    name: 'missing_rewards',
    type: 'gauge',
    help: 'Attempts that wait for an external reward.',
    of: ({ facts }) => facts.state.awaited?.missing,
  },
];

const OF_JUDGE: readonly RunMetric[] = [
  {
    name: 'judge_calls_total',
    type: 'counter',
    help: 'Answers of the judge; cached ones cost nothing.',
    of: ({ facts: { state } }) =>
      state.judging && [
        [{ outcome: 'asked' }, state.judging.calls],
        [{ outcome: 'cached' }, state.judging.cached],
      ],
  },
  {
    name: 'judge_tokens_total',
    type: 'counter',
    help: 'Tokens of the judge.',
    of: ({ facts: { state } }) =>
      state.judging && [
        [{ kind: 'prompt' }, state.judging.promptTokens],
        [{ kind: 'completion' }, state.judging.completionTokens],
      ],
  },
];

/** Sums over all branches, as the run itself counts them. */
const OF_COSTS: readonly RunMetric[] = [
  {
    name: 'cost_dollars_total',
    type: 'counter',
    help: 'Cost in US dollars by cause, where prices are known.',
    of: ({ facts }) => Object.entries(facts.state.costs?.usd ?? {}).map(([cause, usd]) => [{ cause }, usd]),
  },
  {
    name: 'cost_budget_dollars',
    type: 'gauge',
    help: 'Budget of the run in US dollars.',
    of: ({ facts }) => facts.state.costs?.maxCostUsd,
  },
  {
    name: 'work_seconds_total',
    type: 'counter',
    help: 'Working time of the run, without pauses.',
    of: ({ facts }) => facts.state.costs?.seconds,
  },
  {
    name: 'work_budget_seconds',
    type: 'gauge',
    help: 'Budget of working time.',
    of: ({ facts: { state } }) => (state.costs?.maxHours === undefined ? null : state.costs.maxHours * 3600),
  },
  {
    name: 'tokens_total',
    type: 'counter',
    help: 'Tokens of attempts and evaluations, by kind.',
    of: ({ facts }) => (facts.state.costs === undefined ? null : tokensOf(facts.state.costs.usage)),
  },
];

const OF_STEPS = STEP_COUNTERS.map(({ name, help, label }): RunMetric => ({
  name: `${name}_total`,
  type: 'counter',
  help,
  of: ({ facts }) => labelled(label, facts.totals.get(name) ?? []),
}));

export const RUN_METRICS: readonly RunMetric[] = [
  ...OF_STATE,
  ...OF_LAST_STEP,
  ...OF_WAITS,
  ...OF_STEPS,
  ...OF_JUDGE,
  ...OF_COSTS,
];

export function runFamilies(runs: readonly WatchedRun[]): Family[] {
  return RUN_METRICS.map(({ name, type, help, of }) => ({
    name: `temper_run_${name}`,
    type,
    help,
    samples: runs.flatMap((run) => samplesOf(of(run), labelsOf(run))),
  }));
}

function labelsOf({ facts: { config } }: WatchedRun): Labels {
  return { run: config.run, agent: config.agent, base_model: config.baseModel };
}

function samplesOf(found: ReturnType<RunMetric['of']>, own: Labels): Sample[] {
  const values: readonly (readonly [Labels, Value])[] =
    found === null || found === undefined || typeof found === 'number' ? [[{}, found]] : found;
  return values.flatMap(([labels, value]) =>
    value === null || value === undefined ? [] : [{ labels: { ...own, ...labels }, value }],
  );
}

function labelled(label: string | null, values: Iterable<readonly [string, number]>): (readonly [Labels, number])[] {
  return [...values].map(([value, amount]) => [label === null ? {} : { [label]: value }, amount]);
}

function tokensOf({ promptTokens, cachedPromptTokens, sampledTokens, hosted }: Usage): (readonly [Labels, number])[] {
  return [
    [{ kind: 'prompt' }, promptTokens - cachedPromptTokens],
    [{ kind: 'cached_prompt' }, cachedPromptTokens],
    [{ kind: 'sampled' }, sampledTokens],
    [{ kind: 'hosted_prompt' }, hosted?.promptTokens ?? 0],
    [{ kind: 'hosted_completion' }, hosted?.completionTokens ?? 0],
  ];
}

/** Waits that the run itself has recorded. */
function waitsOfState({ state: { state, pause, awaited } }: MetricFacts): [string, number][] {
  const found: [string, string | undefined][] = [
    ['resume', state === 'paused' ? pause?.since : undefined],
    ['rewards', awaited?.since],
  ];
  return found.flatMap(([what, since]): [string, number][] =>
    since === undefined ? [] : [[what, Date.parse(since) / 1000]],
  );
}
