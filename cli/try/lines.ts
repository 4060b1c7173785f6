/** Output of `temper try`: a conversation for each attempt, then a table of scenarios, warnings and notes. */
import { formatUsd } from '../../core/rules/judge-spending.ts';
import { isNamedReward } from '../../core/rules/named-rewards.ts';
import { mean } from '../../core/numbers/statistics.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { HostedCallView, MessageView, TurnView } from '../../views/api/attempt-views.ts';
import { messageText } from '../../views/api/message-text.ts';
import { playedCalls } from '../../views/attempts/read-played.ts';
import { viewHosted, viewTurns } from '../../views/attempts/view-attempt.ts';
import { formatDuration, formatNumber, plural } from '../../core/reports/format.ts';
import { printable } from '../../core/text/printable.ts';
import { createTable } from '../terminal/table.ts';
import type { TriedAttempt, TriedGroup, TrySummary } from './play.ts';

const ROLE_WIDTH = 9;
const LEAST_WIDTH = 20;
const MOST_WIDTH = 100;
/** Line limit of one message. */
const MOST_LINES = 14;
const MOST_LOG_LINES = 10;
const BOUNDS = { calls: 40, textLength: 8000 } as const;
const MAX_HOSTED = 500;

export function groupLines({ scenarioId, attempts }: TriedGroup, columns: number): string[] {
  return attempts.flatMap((attempt, index) => [
    `── ${scenarioId} · attempt ${index + 1} of ${attempts.length}`,
    ...attemptLines(attempt, columns),
    '',
  ]);
}

function attemptLines(tried: TriedAttempt, columns: number): string[] {
  const { record, asked } = tried;
  const turns = viewTurns(playedCalls({ ...record, calls: [...asked] }, null), BOUNDS);
  const leftOut = asked.length - turns.length;
  const hosted = (record.hostedCalls ?? []).slice(0, BOUNDS.calls);
  return [
    ...turns.flatMap((turn) => turnLines(turn, columns)),
    ...(leftOut === 0 ? [] : [`… ${leftOut} more calls`]),
    ...hosted.flatMap((call) => textLines('hosted', hostedText(viewHosted(call, MAX_HOSTED)), columns)),
    ...logLines(record.logs, columns),
    ...outcomeLines(tried),
  ];
}

function turnLines({ fresh, messages, answer, finishReason, reward }: TurnView, columns: number): string[] {
  const cut = finishReason === 'length' ? [hanging('', '(cut at the token limit)', columns)] : [];
  const earned = reward === null ? [] : [hanging('', `(this turn earned ${formatNumber(reward)})`, columns)];
  return [
    ...(fresh ? ['          (another conversation)'] : []),
    ...[...messages, answer].flatMap((message) => messageLines(message, columns)),
    ...cut.flat(),
    ...earned.flat(),
  ];
}

function messageLines(message: MessageView, columns: number): string[] {
  const cut = message.cut > 0 ? ` … (${message.cut} more characters)` : '';
  return textLines(message.role, `${messageText(message)}${cut}`, columns);
}

/** `openai/gpt-5-mini, 412 + 9 tokens, $0.001: Yes.` */
function hostedText({ model, role, answers, refusal, promptTokens, completionTokens, usd }: HostedCallView): string {
  const name = role === null ? model : `${role}, ${model}`;
  if (refusal !== null) return `${name} refused: ${refusal}`;
  const tokens =
    promptTokens === null || completionTokens === null
      ? 'tokens unknown'
      : `${promptTokens} + ${completionTokens} tokens`;
  const cost = usd === null ? [] : [`$${formatUsd(usd)}`];
  return `${[name, tokens, ...cost].join(', ')}: ${answers.map(messageText).join('\n')}`;
}

function textLines(role: string, text: string, columns: number): string[] {
  const lines = hanging(role, text === '' ? '(empty)' : text, columns);
  if (lines.length <= MOST_LINES) return lines;
  const shown = lines.slice(0, MOST_LINES - 1);
  return [...shown, ...hanging('', `… ${lines.length - shown.length} more lines`, columns)];
}

function logLines(logs: readonly string[], columns: number): string[] {
  const shown = logs.slice(0, MOST_LOG_LINES).flatMap((line) => hanging('log', line, columns));
  const more = logs.length - MOST_LOG_LINES;
  return more > 0 ? [...shown, ...hanging('', `… ${more} more lines in the log`, columns)] : shown;
}

function outcomeLines({ record, asked, seconds, promptTokens, completionTokens, thrownAt }: TriedAttempt): string[] {
  const metrics = Object.entries(record.metrics).map(([name, value]) => `${name} ${formatMetric(value)}`);
  const outcome =
    record.failure === null
      ? [`reward ${formatNumber(record.reward)}`, ...metrics].join(' · ')
      : `failed: ${record.failure.message}${thrownAt === null ? '' : ` (${thrownAt})`}`;
  const tokens =
    promptTokens === null || completionTokens === null
      ? 'tokens unknown'
      : `${promptTokens} tokens read, ${completionTokens} written`;
  return [`=> ${outcome}`, `   ${plural(asked.length, 'call')} · ${tokens} · ${formatDuration(seconds)}`];
}

function formatMetric(value: number | boolean): string {
  return typeof value === 'boolean' ? String(value) : formatNumber(value);
}

/** Wraps text beside its role. Control characters are escaped first, because escapes take more columns. */
function hanging(role: string, text: string, columns: number): string[] {
  const width = Math.max(LEAST_WIDTH, Math.min(columns, MOST_WIDTH) - ROLE_WIDTH - 1);
  const lines = printable(text)
    .replaceAll('\t', '  ')
    .split('\n')
    .flatMap((line) => wrap(line, width));
  return lines.map((line, index) => `${(index === 0 ? role : '').padEnd(ROLE_WIDTH)} ${line}`.trimEnd());
}

/** Wraps at blanks; a longer word is cut. */
export function wrap(line: string, width: number): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const blank = rest.lastIndexOf(' ', width);
    const end = blank > 0 ? blank : width;
    lines.push(rest.slice(0, end));
    rest = rest.slice(blank > 0 ? end + 1 : end);
  }
  return [...lines, rest];
}

/** Metrics that are named rewards: each is a column. */
function rewardNames(groups: readonly TriedGroup[]): string[] {
  const names = groups.flatMap(({ attempts }) => attempts.flatMap(({ record }) => Object.keys(record.metrics)));
  return [...new Set(names)].filter(isNamedReward);
}

function valuesOf({ metrics }: AttemptRecord, name: string): number[] {
  return metrics[name] === undefined ? [] : [Number(metrics[name])];
}

export function summaryLines({ agent, model, groups, warnings, notes }: TrySummary): string[] {
  const names = rewardNames(groups);
  const rows = groups.map(({ scenarioId, attempts }) => {
    const rewards = attempts.flatMap(({ record }) => record.reward ?? []);
    const failed = attempts.filter(({ record }) => record.status === 'failed').length;
    const range =
      rewards.length === 0 ? '–' : `${formatNumber(Math.min(...rewards))} to ${formatNumber(Math.max(...rewards))}`;
    const means = names.map((name) => formatNumber(mean(attempts.flatMap(({ record }) => valuesOf(record, name)))));
    return [scenarioId, String(attempts.length), String(failed), formatNumber(mean(rewards)), range, ...means];
  });
  return [
    `${agent}, played by ${model}`,
    ...createTable(['scenario', 'attempts', 'failed', 'mean reward', 'lowest to highest', ...names], rows).split('\n'),
    ...warnings.map((warning) => `warning: ${warning}`),
    ...notes.map((note) => `note: ${note}`),
  ];
}
