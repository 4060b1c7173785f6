/** Rows of attempts: one function for steps, groups, single attempts and the index. */
import { formatAttemptId } from '../../core/names/attempt-id.ts';
import type { GroupResult, RunConfig, SettingChange } from '../../core/contract/contract.ts';
import { toRewardMetrics } from '../../core/rules/named-rewards.ts';
import { planRoles, rewardRules } from '../../core/plan/step.ts';
import { configAt } from '../../core/rules/settings.ts';
import { mean } from '../../core/numbers/statistics.ts';
import type { StepPlace } from '../../store/layout.ts';
import type { TimesFile } from '../../store/records/file-schemas.ts';
import { summariseGroup } from '../../store/records/groups/group-result.ts';
import { callOrder } from '../../store/records/runs/run-reader.ts';
import type { AttemptRecord, CallRecord, Judged, Rollouts } from '../../store/records/groups/trajectories.ts';
import type { AttemptRow } from '../api/attempt-views.ts';

/** Files of a group, or of an evaluation. */
export interface PlayedFiles {
  readonly place: Omit<StepPlace, 'run'>;
  /** Null: an evaluation. */
  readonly group: number | null;
  readonly rollouts: {
    readonly header: Pick<Rollouts['header'], 'scenarioId'>;
    readonly attempts: readonly AttemptRecord[];
  };
  readonly judged: Judged | null;
  readonly times: Pick<TimesFile, 'attemptTimes' | 'callOrders'> | null;
  readonly use: AttemptRow['use'];
}

/** In the order of the record. */
export function attemptRows(files: PlayedFiles): AttemptRow[] {
  const { rollouts, judged, group } = files;
  const rewards = rollouts.attempts.map(({ reward }, index) => (judged === null ? reward : judged.rewards[index]!));
  const average = group === null ? null : mean(rewards.filter((reward) => reward !== null));
  return rollouts.attempts.map((record, index) => attemptRow(files, record, index, rewards[index] ?? null, average));
}

function attemptRow(
  { place: { branch, step }, group, rollouts, judged, times, use }: PlayedFiles,
  record: AttemptRecord,
  index: number,
  reward: number | null,
  average: number | null,
): AttemptRow {
  const { attempt, failure, truncated, calls } = record;
  return {
    id: formatAttemptId({ branch, step, group, attempt }),
    branch,
    step,
    group,
    attempt,
    scenario: record.scenarioId ?? rollouts.header.scenarioId ?? '',
    answer: answerOf(record, times),
    reward,
    advantage: reward === null || average === null ? null : reward - average,
    failure: failure?.type ?? null,
    truncated,
    turns: calls.length,
    sampledTokens: calls.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    tools: toolsOf(calls),
    metrics: metricsOf(record, judged, index),
    seconds: secondsOf(times, attempt),
    use,
  };
}

/** Names of the tools that were called, each once, sorted. */
function toolsOf(calls: readonly Pick<CallRecord, 'message'>[]): string[] {
  const names = calls.flatMap(({ message }) => (Array.isArray(message.tool_calls) ? message.tool_calls : []));
  return [...new Set(names.flatMap((call) => toolName(call) ?? []))].toSorted();
}

/** Null: the model wrote something else. */
function toolName(call: unknown): string | null {
  const { function: called } = (call ?? {}) as { function?: { name?: unknown } | null };
  return typeof called?.name === 'string' ? called.name : null;
}

/** Rows are many, and of a long answer its beginning is enough to know it. */
const MOST_ANSWER = 200;
const END_OF_THOUGHTS = '</think>';

/** First line of the last message that was sampled, or the tools that it calls. */
function answerOf(record: AttemptRecord, times: PlayedFiles['times']): string | null {
  const message = record.calls[callOrder(record, times).at(-1) ?? -1]?.message;
  if (message === undefined) return null;
  const text = textOf(message.content);
  const thoughts = text.lastIndexOf(END_OF_THOUGHTS);
  const said = (thoughts === -1 ? text : text.slice(thoughts + END_OF_THOUGHTS.length)).trim();
  const line = (said === '' ? toolsOf([{ message }]).join(', ') : said).split('\n', 1)[0]!.trim();
  return line.length <= MOST_ANSWER ? line : `${line.slice(0, MOST_ANSWER).toWellFormed()}…`;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = parts.map((part) => (part as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === 'string').join('\n');
}

/** True is 1, false is 0. Rewards by name are `reward/NAME`. */
function metricsOf({ metrics }: AttemptRecord, judged: Judged | null, index: number): Record<string, number> {
  const own = Object.entries(metrics).map(([name, value]): [string, number] => [name, Number(value)]);
  const named = judged?.namedRewards?.[index] ?? {};
  const score = judged?.scores?.[index] ?? null;
  return {
    ...Object.fromEntries(own),
    ...judged?.givenMetrics?.[index],
    ...toRewardMetrics(named),
    ...(score !== null && { judgeScore: score }),
  };
}

function secondsOf(times: PlayedFiles['times'], attempt: number): number | null {
  const own = times?.attemptTimes?.[String(attempt)];
  return own === undefined ? null : (own.endedAt - own.startedAt) / 1000;
}

/** A group's use as far as its own files tell: `stale` is said by its step's verdict alone. */
export function groupUse(
  { config, changes }: { readonly config: RunConfig; readonly changes: readonly SettingChange[] },
  { branch, step, group }: { readonly branch: number; readonly step: number; readonly group: number },
  rollouts: Rollouts,
  verdict: { readonly judged: Judged; readonly sha256: string } | null,
): GroupResult['use'] {
  if (verdict === null) return 'unjudged';
  const planned = configAt(config, changes, { branch, step });
  const { minimumGroupSize, train } = planned;
  const scenario = rollouts.header.scenario ?? 0;
  const plan = { step, group, scenario, minimumGroupSize, ...rewardRules(train), ...planRoles(planned) };
  return summariseGroup(plan, rollouts, verdict.judged, verdict.sha256).use;
}
