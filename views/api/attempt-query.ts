/** The query of a search over attempts: its parameters, which rows it asks for, and their order. The same for `temper ui` and its export. Pure. */
import { badConfig } from '../../core/contract/failures.ts';
import type { AttemptRow, AttemptsView } from './attempt-views.ts';
import { readChoice, readCount, readFlag, readQueryNumber, readQueryText } from './query.ts';

const MOST_ROWS = 500;
export const DEFAULT_LIMIT = 100;

type Matches = (row: AttemptRow) => boolean;

/** All that a row itself tells; text is looked for elsewhere. */
export function rowMatcher(query: AttemptQuery): Matches {
  const { tool, failure, truncated, minReward, maxReward, metric, scenario } = query;
  const tests: Matches[] = [];
  if (tool !== undefined) tests.push(({ tools }) => tools.includes(tool));
  if (failure !== undefined) tests.push((row) => (failure === 'any' ? row.failure !== null : row.failure === failure));
  if (truncated !== undefined) tests.push((row) => row.truncated === truncated);
  if (minReward !== undefined) tests.push(({ reward }) => reward !== null && reward >= minReward);
  if (maxReward !== undefined) tests.push(({ reward }) => reward !== null && reward <= maxReward);
  if (scenario !== undefined) tests.push((row) => row.scenario === scenario);
  if (metric !== undefined) tests.push(metricMatcher(metric));
  return (row) => tests.every((matches) => matches(row));
}

/** A group of attempts as far as its place tells whether it can match. */
export function canMatchGroup(query: AttemptQuery, { step, isEval }: { step: number; isEval: boolean }): boolean {
  const { kind, fromStep = 0, toStep = Infinity } = query;
  return step >= fromStep && step <= toStep && (kind === undefined || (kind === 'eval') === isEval);
}

function metricMatcher(condition: string): Matches {
  const matches = parseMetricFilter(condition);
  if (matches !== null) return ({ metrics }) => matches(metrics);
  throw badConfig(
    `metric must be a name, one of >= <= > < = != and a number, such as moves<3, got ${JSON.stringify(condition.slice(0, 200))}; change or remove it`,
  );
}

export type Compare = (one: AttemptRow, other: AttemptRow) => number;

const placed: Compare = (one, other) =>
  one.branch - other.branch ||
  one.step - other.step ||
  (one.group ?? Infinity) - (other.group ?? Infinity) ||
  one.attempt - other.attempt;
const newestFirst: Compare = (one, other) => other.branch - one.branch || other.step - one.step || placed(one, other);

/** Rows without a number come last, whatever the direction. */
function byNumber(valueOf: (row: AttemptRow) => number | null, sign: 1 | -1): Compare {
  return (one, other) => {
    const [left, right] = [valueOf(one), valueOf(other)];
    if (left === null || right === null)
      return Number(left === null) - Number(right === null) || newestFirst(one, other);
    return sign * (left - right) || newestFirst(one, other);
  };
}

export const ORDERS = {
  newest: newestFirst,
  oldest: placed,
  reward: byNumber(({ reward }) => reward, 1),
  '-reward': byNumber(({ reward }) => reward, -1),
  tokens: byNumber(({ sampledTokens }) => sampledTokens, 1),
  '-tokens': byNumber(({ sampledTokens }) => sampledTokens, -1),
  turns: byNumber(({ turns }) => turns, 1),
  '-turns': byNumber(({ turns }) => turns, -1),
} as const satisfies Record<string, Compare>;

type Read<T> = (query: URLSearchParams, name: string) => T | undefined;

const oneOf =
  <T extends string>(choices: readonly T[]): Read<T> =>
  (query, name) =>
    readChoice(query, name, choices);

/** Each with its meaning. Filters must all match. */
const PARAMETERS = {
  text: ['text in a message, in any case', readQueryText],
  tool: ['name of a tool that was called', readQueryText],
  failure: ['any, or a type of failure', readQueryText],
  truncated: ['true or false', readFlag],
  minReward: ['smallest reward', readQueryNumber],
  maxReward: ['largest reward', readQueryNumber],
  metric: ['metric, operator and number: moves<3', readQueryText],
  scenario: ['id of the scenario', readQueryText],
  fromStep: ['first step', readCount],
  toStep: ['last step', readCount],
  kind: ['train or eval', oneOf(['train', 'eval'])],
  sort: [
    'newest, oldest, reward, tokens, turns; with - before it the largest first',
    oneOf(Object.keys(ORDERS) as (keyof typeof ORDERS)[]),
  ],
  offset: ['rows to skip', readCount],
  limit: [`rows to answer, at most ${MOST_ROWS}`, (query, name) => readCount(query, name, MOST_ROWS)],
} as const satisfies Record<string, readonly [meaning: string, read: Read<unknown>]>;

type Parameters = typeof PARAMETERS;

/** Query of `runs/RUN/attempts`. */
export type AttemptQuery = { readonly [Name in keyof Parameters]?: NonNullable<ReturnType<Parameters[Name][1]>> };

export const ATTEMPT_PARAMETERS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(PARAMETERS).map(([name, [meaning]]) => [name, meaning]),
);

/** Throws BadConfig for a wrong parameter. */
export function parseAttemptQuery(query: URLSearchParams): AttemptQuery {
  const asked = Object.entries(PARAMETERS).map(([name, [, read]]) => [name, read(query, name)] as const);
  return Object.fromEntries(asked.filter(([, value]) => value !== undefined));
}

/** A search over rows alone, as of an export: texts of messages are in no row. */
export function filterRows(view: AttemptsView, query: AttemptQuery): AttemptsView {
  const { text, sort = 'newest', offset = 0, limit = DEFAULT_LIMIT, ...asked } = query;
  if (text !== undefined) throw new Error('this export has no index of messages; search for text in temper ui');
  const matches = rowMatcher(asked);
  const rows = view.rows
    .filter((row) => canMatchGroup(asked, { step: row.step, isEval: row.use === 'eval' }) && matches(row))
    .toSorted(ORDERS[sort]);
  const leftOut = view.total - view.rows.length;
  return { ...view, total: rows.length, rows: rows.slice(offset, offset + limit), ...(leftOut > 0 && { leftOut }) };
}

/** An operator and a number at the end of a text; all before it is a name. */
const CONDITION = /(>=|<=|!=|==?|>|<)\s*(-?[0-9.]+(?:e[+-]?[0-9]+)?)$/i;
const MOST_FILTER_CHARACTERS = 200;

const OPERATORS: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  '>=': (value, bound) => value >= bound,
  '<=': (value, bound) => value <= bound,
  '>': (value, bound) => value > bound,
  '<': (value, bound) => value < bound,
  '=': (value, bound) => value === bound,
  '==': (value, bound) => value === bound,
  '!=': (value, bound) => value !== bound,
};

/** Filters such as `winRate>=0.5`; null where it is none. Of an attempt, the rate of a metric that is true or false is 1 or 0. */
function parseMetricFilter(text: string): ((metrics: Readonly<Record<string, number | undefined>>) => boolean) | null {
  const filter = text.length > MOST_FILTER_CHARACTERS ? '' : text.trim();
  const found = CONDITION.exec(filter);
  const [, operator = '', bound = ''] = found ?? [];
  const name = filter.slice(0, found?.index ?? 0).trim();
  const compare = OPERATORS[operator];
  if (name === '' || compare === undefined || Number.isNaN(Number(bound))) return null;
  return (metrics) => {
    const value = metrics[name] ?? metrics[name.replace(/Rate$/, '')];
    return value !== undefined && compare(value, Number(bound));
  };
}
