/** Scenarios from wherever an agent has them: read once, checked, as the JSON that rollouts will get. */
import { dirname, resolve } from 'node:path';

import type { HubDataset } from '../core/contract/contract.ts';
import { badConfig, showValue, type TemperError } from '../core/contract/failures.ts';
import { wellFormed } from '../core/text/json-text.ts';
import { drawSample } from '../core/numbers/split-held-out.ts';
import type { Agent, Scenario, ScenarioSource } from './agent.ts';
import type { Patience } from './sources/ask-again.ts';
import { csvSource } from './sources/csv.ts';
import { jsonLinesSource } from './sources/json-lines.ts';
import { parquetSource } from './sources/parquet.ts';
import { isRowSource, type Row, type RowSource } from './sources/row-source.ts';

/** A scenario that was read, and its number in its source. */
export interface ReadScenario {
  readonly scenario: Scenario;
  readonly number: number;
}

/** Scenarios one after the other, so that a source may be larger than the memory. */
export interface OpenScenarios {
  readonly scenarios: AsyncIterable<ReadScenario>;
  /** `line 3 of questions.csv`; null where the source has no names for its places. */
  readonly placeOf: ((number: number) => string) | null;
  /** Which data these are, once they were read; undefined if nothing but the scenarios themselves tells it. */
  readonly origin: () => HubDataset | undefined;
}

/** At most `limit` scenarios: a generator may be endless. */
export function openScenarios(source: ScenarioSource<Scenario>, limit: number, patience: Patience = {}): OpenScenarios {
  const located = typeof source === 'string' || source instanceof URL ? openFile(source) : source;
  if (!isRowSource(located)) return { scenarios: readValues(located, limit), placeOf: null, origin: () => undefined };
  const { rows, placeOf, remedy, origin } = located.open(patience);
  return { scenarios: readRows(rows, limit, placeOf, remedy), placeOf, origin };
}

/** All of them at once, for a few. */
export async function readScenarios(
  source: ScenarioSource<Scenario>,
  limit: number,
  patience: Patience = {},
): Promise<Scenario[]> {
  const read: Scenario[] = [];
  for await (const { scenario } of openScenarios(source, limit, patience).scenarios) read.push(scenario);
  return read;
}

/** Most scenarios that a sample is drawn from: a generator may be endless. */
export const SAMPLED_FROM = 10_000;

export interface Sample {
  /** In the order of the source, with their numbers in it. */
  readonly scenarios: readonly { readonly scenario: Scenario; readonly index: number }[];
  /** Number of those that were read. */
  readonly of: number;
}

/** A file may be sorted by what is asked for: the first ones would all be alike. `list` names the source in messages. */
export async function sampleScenarios(
  source: ScenarioSource<Scenario>,
  { count, spreadBy, list }: { count: number; spreadBy: string | undefined; list: string },
  patience: Patience = {},
): Promise<Sample> {
  const opened = openScenarios(source, SAMPLED_FROM, patience);
  const unique = new UniqueIds();
  unique.begin(list, opened);
  let kept: { scenario: Scenario; index: number; value: string }[] = [];
  const cut = () => {
    const ids = kept.map(({ scenario }) => scenario.id);
    const values = kept.map(({ value }) => value);
    return drawSample(ids, count, values).map((index) => kept[index]!);
  };
  let of = 0;
  for await (const read of opened.scenarios) {
    unique.add(read);
    const { scenario } = read;
    kept.push({ scenario, index: of++, value: spreadValue(scenario, spreadBy) });
    if (kept.length > 2 * count) kept = cut();
  }
  return { scenarios: cut(), of };
}

/** What a sample is spread over, as text: the same for all if no field is named. */
export function spreadValue(scenario: Scenario, field: string | undefined): string {
  if (field === undefined) return '';
  const value = JSON.stringify((scenario as Scenario & Readonly<Record<string, unknown>>)[field]);
  if (value !== undefined) return value;
  throw badConfig(
    `spreadBy must name a field of every scenario, but ${JSON.stringify(scenario.id)} has no ${field}; name another one, or add it`,
  );
}

async function* readValues(
  source: Exclude<ScenarioSource<Scenario>, string | URL>,
  limit: number,
): AsyncGenerator<ReadScenario> {
  let number = 0;
  for await (const value of typeof source === 'function' ? await source() : source) {
    yield { scenario: checkScenario(value, `scenario ${number}`), number };
    if (++number === limit) return;
  }
}

async function* readRows(
  rows: AsyncIterable<Row>,
  limit: number,
  placeOf: (number: number) => string,
  remedy: string,
): AsyncGenerator<ReadScenario> {
  let count = 0;
  for await (const { value, number } of rows) {
    const advice = Array.isArray(value) ? 'write one object on each line, without a list' : remedy;
    yield { scenario: checkScenario(value, placeOf(number), advice), number };
    if (++count === limit) return;
  }
}

/** The agent with absolute paths and its folder: a path in an agent file is relative to that file, in the CLI and in workers. */
export function locateScenarios(agent: Agent, file: string): Agent {
  const { scenarios, evalScenarios } = agent;
  const locate = (source: ScenarioSource<Scenario>) => {
    if (typeof source === 'string') return resolve(dirname(file), source);
    return isRowSource(source) ? source.in(dirname(file)) : source;
  };
  const held = evalScenarios === undefined ? {} : { evalScenarios: locate(evalScenarios) };
  return Object.freeze({ ...agent, scenarios: locate(scenarios), ...held, folder: dirname(file) });
}

/** Refuses ids that stand twice, in one list or in both, while scenarios are read: what is evaluated must not be trained. */
export class UniqueIds {
  readonly #lists: { placeOf: (number: number) => string; numbers: Map<string, number> }[] = [];

  /** The list that the next scenarios are from. */
  begin(list: string, { placeOf }: Pick<OpenScenarios, 'placeOf'>): void {
    this.#lists.push({ placeOf: placeOf ?? ((index) => `${list}[${index}]`), numbers: new Map() });
  }

  add({ scenario: { id }, number }: ReadScenario): void {
    const newest = this.#lists.at(-1)!;
    for (const { numbers, placeOf } of this.#lists) {
      const first = numbers.get(id);
      if (first !== undefined) throw duplicate(id, placeOf(first), newest.placeOf(number));
    }
    newest.numbers.set(id, number);
  }
}

/** The ending decides: `.csv`, `.tsv` or `.parquet`; any other file holds JSON lines. */
function openFile(file: string | URL): RowSource<Scenario> {
  const path = file instanceof URL ? file.pathname : file;
  if (/\.[ct]sv$/i.test(path)) return csvSource(file);
  return /\.parquet$/i.test(path) ? parquetSource(file) : jsonLinesSource(file);
}

function checkScenario(value: unknown, place: string, remedy = 'give it one'): Scenario {
  const json = toJson(value, place);
  const { id } = (json ?? {}) as { id?: unknown };
  if (typeof id === 'string' && id !== '') return json as Scenario;
  throw badConfig(`${place} must be an object with a non-empty string id, got ${showValue(json)}; ${remedy}`);
}

/** The value after a round trip through JSON, as another process will see it. */
function toJson(value: unknown, place: string): unknown {
  try {
    const json = JSON.parse(JSON.stringify(value, refuseLoss) ?? 'null') as unknown;
    if (wellFormed(json) === json) return json;
    throw new Error('a text holds half of a surrogate pair, which is no character');
  } catch (cause) {
    if (cause instanceof Loss) {
      const remedy = 'make a text or a finite number of it, or leave it out, for example in map';
      throw badConfig(`${place} must be JSON, but ${cause.message}; ${remedy}`, { cause });
    }
    throw badConfig(`${place} must be JSON: ${String(cause)}; remove what is not JSON`, {
      cause,
    });
  }
}

class Loss extends Error {}

/** For `JSON.stringify`, which would write null for what is no number, and an object of numbers for bytes. */
function refuseLoss(this: unknown, name: string, json: unknown): unknown {
  // Dates and buffers have become JSON by themselves here.
  const lost = describeLoss((this as Record<string, unknown>)[name]);
  if (lost === null) return json;
  throw new Loss(`${Array.isArray(this) ? 'a list' : name || 'it'} holds ${lost}`);
}

function describeLoss(value: unknown): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value);
  if (typeof value === 'bigint') return `the integer ${value}, which a number may not hold exactly`;
  if (typeof value !== 'object' || value === null) return null;
  if (ArrayBuffer.isView(value)) return 'bytes';
  if (value instanceof Map || value instanceof Set) return `a ${value.constructor.name}`;
  return value instanceof Date && Number.isNaN(value.getTime()) ? 'a date that is none' : null;
}

function duplicate(id: string, first: string, second: string): TemperError {
  const rule = 'scenario ids must be unique, among evalScenarios too';
  return badConfig(`${rule}, got ${JSON.stringify(id)} at ${first} and ${second}; rename one`);
}
