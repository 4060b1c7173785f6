/** One step as a trace of its own: the step, and a span for each of its groups, which attempts' traces link to. */
import type { StepSummary } from '../../core/contract/contract.ts';
import { mean } from '../../core/numbers/statistics.ts';
import { attemptRoot } from './attempt-spans.ts';
import { rootOf, spanIdOf } from './ids.ts';
import { nanoseconds, SPAN_KIND, type Attributes, type Span, type SpanLink, type SpanPlace } from './otlp/span.ts';
import { timeOfGroup } from './span-times.ts';
import { rewardsOf, type TracedGroup, type TracedRun } from './traced.ts';

function runRoot({ storeId, run }: TracedRun): SpanPlace {
  return rootOf(storeId, run, 'run');
}

interface PlacedStep {
  readonly branch: number;
  readonly step: number;
}

function stepRoot({ storeId, run }: TracedRun, { branch, step }: PlacedStep): SpanPlace {
  return rootOf(storeId, run, `${branch}.${step}`);
}

/** Leads from an attempt to its group; null for an evaluation, which belongs to no step. */
export function groupLink(run: TracedRun, decidedBy: PlacedStep, group: TracedGroup): SpanLink | null {
  if (group.group === null) return null;
  return { ...groupPlace(run, decidedBy, group), attributes: { 'temper.link': 'group' } };
}

/** A group may have been dealt to an earlier step than the one that decided on it. */
function groupPlace(run: TracedRun, decidedBy: PlacedStep, { branch, step, group }: TracedGroup): SpanPlace {
  const { traceId } = stepRoot(run, decidedBy);
  return { traceId, spanId: spanIdOf(traceId, `${branch}.${step}.${group}`) };
}

/** `groups` are the spans of its groups: it begins with the first of them. */
export function stepSpan(
  run: TracedRun,
  { branch, summary, over }: { branch: number; summary: StepSummary; over: number },
  groups: readonly Pick<Span, 'start'>[],
): Span {
  const root = stepRoot(run, { branch, step: summary.step });
  const begun = groups.map((group) => group.start);
  const lasted = nanoseconds((summary.seconds['step'] ?? 0) * 1000);
  const end = nanoseconds(over);
  const start = begun.reduce((first, each) => (each < first ? each : first), end - lasted);
  return {
    ...root,
    parentSpanId: null,
    name: `step ${summary.step}`,
    kind: SPAN_KIND.internal,
    start,
    end,
    attributes: { ...placed(run, { branch, step: summary.step }), ...stepAttributes(summary) },
    events: [],
    links: [{ ...runRoot(run), attributes: { 'temper.link': 'run' } }],
    error: null,
  };
}

function placed({ run, agent, baseModel }: TracedRun, { branch, step }: PlacedStep): Attributes {
  return {
    'temper.run': run,
    'temper.agent': agent,
    'temper.base_model': baseModel,
    'temper.branch': branch,
    'temper.step': step,
  };
}

function stepAttributes(summary: StepSummary): Attributes {
  const { reward, learningRate, groups, attempts, failedAttempts, sampledTokens, adapterSha256, unused } = summary;
  const numbers = { ...summary.train, ...summary.metrics };
  const metrics = Object.entries(numbers).filter((entry): entry is [string, number] => entry[1] !== null);
  return {
    ...(reward !== null && { 'temper.reward': { double: reward } }),
    'temper.learning_rate': { double: learningRate },
    'temper.groups.trained': groups,
    ...Object.fromEntries(Object.entries(unused).map(([reason, count]) => [`temper.groups.${reason}`, count])),
    'temper.attempts': attempts,
    'temper.attempts.failed': failedAttempts,
    'temper.tokens.sampled': sampledTokens,
    'temper.adapter.sha256': adapterSha256,
    ...Object.fromEntries(metrics.map(([name, value]) => [`temper.metric.${name}`, { double: value }])),
  };
}

/** `sent` are its attempts that have traces. */
export function groupSpan(run: TracedRun, decidedBy: PlacedStep, group: TracedGroup, sent: readonly number[]): Span {
  const { start, end, of } = timeOfGroup(group);
  const rewards = rewardsOf(group).filter((reward) => reward !== null);
  const average = mean(rewards);
  return {
    ...groupPlace(run, decidedBy, group),
    parentSpanId: stepRoot(run, decidedBy).spanId,
    name: `group ${group.group}`,
    kind: SPAN_KIND.internal,
    start,
    end,
    attributes: {
      ...placed(run, group),
      'temper.group': group.group ?? 0,
      ...(group.scenarioId !== null && { 'temper.scenario.id': group.scenarioId.slice(0, 500) }),
      ...(group.use !== null && { 'temper.group.use': group.use }),
      ...(group.policy !== null && { 'temper.policy': group.policy }),
      'temper.attempts': group.attempts.length,
      'temper.attempts.failed': group.attempts.length - rewards.length,
      'temper.attempts.sent': sent.length,
      ...(average !== null && { 'temper.reward': { double: average } }),
      'temper.time': of,
    },
    events: [],
    links: sent.map((attempt) => ({ ...attemptRoot(run, group, attempt), attributes: { 'temper.link': 'attempt' } })),
    error: null,
  };
}

/** The whole run, once it has ended: steps link to it from the first one on. */
export function runSpan(
  run: TracedRun,
  { beganAt, endedAt, outcome, failure }: { beganAt: number; endedAt: number; outcome: string; failure: string | null },
): Span {
  return {
    ...runRoot(run),
    parentSpanId: null,
    name: `run ${run.run}`,
    kind: SPAN_KIND.internal,
    start: nanoseconds(beganAt),
    end: nanoseconds(Math.max(beganAt, endedAt)),
    attributes: {
      'temper.run': run.run,
      'temper.agent': run.agent,
      'temper.base_model': run.baseModel,
      'temper.outcome': outcome,
    },
    events: [],
    links: [],
    error: failure === null ? null : failure.slice(0, 2000),
  };
}
