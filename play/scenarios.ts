/** Scenarios from wherever an agent has them: read once, checked, as the JSON that rollouts will get. */
import { createReadStream } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TemperError } from '../core/failures.ts';
import { wellFormed } from '../core/json-text.ts';
import { LineSplitter } from '../core/lines.ts';
import type { Agent, Scenario, ScenarioSource } from './agent.ts';

/** At most `limit` scenarios: a generator may be endless. */
export async function readScenarios(source: ScenarioSource<Scenario>, limit: number): Promise<Scenario[]> {
  const scenarios: Scenario[] = [];
  for await (const value of await open(source)) {
    scenarios.push(value instanceof Line ? value.scenario() : checkScenario(value, `scenario ${scenarios.length}`));
    if (scenarios.length === limit) break;
  }
  return scenarios;
}

/** The place of a scenario in its file, for messages. */
const LINES = new WeakMap<Scenario, string>();

class Line {
  readonly #value: unknown;
  readonly #place: string;

  constructor(value: unknown, place: string) {
    this.#value = value;
    this.#place = place;
  }

  scenario(): Scenario {
    const remedy = Array.isArray(this.#value) ? 'write one object on each line, without a list' : undefined;
    const scenario = checkScenario(this.#value, this.#place, remedy);
    LINES.set(scenario, this.#place);
    return scenario;
  }
}

/** The agent with absolute paths and its folder: a path in an agent file is relative to that file, in the CLI and in workers. */
export function locateScenarios(agent: Agent, file: string): Agent {
  const { scenarios, evalScenarios } = agent;
  const locate = (source: ScenarioSource<Scenario>) =>
    typeof source === 'string' ? resolve(dirname(file), source) : source;
  const held = evalScenarios === undefined ? {} : { evalScenarios: locate(evalScenarios) };
  return Object.freeze({ ...agent, scenarios: locate(scenarios), ...held, folder: dirname(file) });
}

/** Refuses ids that stand twice, in one list or in both: what is evaluated must not be trained. */
export function checkUnique(lists: Record<string, readonly Scenario[]>): void {
  const seen = new Map<string, string>();
  for (const [list, scenarios] of Object.entries(lists)) {
    for (const [index, scenario] of scenarios.entries()) {
      const { id } = scenario;
      const place = LINES.get(scenario) ?? `${list}[${index}]`;
      const first = seen.get(id);
      if (first !== undefined) throw duplicate(id, first, place);
      seen.set(id, place);
    }
  }
}

async function open(source: ScenarioSource<Scenario>): Promise<Iterable<unknown> | AsyncIterable<unknown>> {
  if (typeof source === 'string') return readLines(source);
  if (source instanceof URL) return readLines(fileURLToPath(source));
  return typeof source === 'function' ? await source() : source;
}

async function* readLines(file: string): AsyncGenerator<Line> {
  let number = 0;
  try {
    for await (const line of splitLines(createReadStream(file, { encoding: 'utf8' }))) {
      number += 1;
      const text = number === 1 ? line.replace(/^\uFEFF/, '') : line;
      if (text.trim() !== '') yield new Line(JSON.parse(text) as unknown, `line ${number} of ${file}`);
    }
  } catch (cause) {
    const problem =
      cause instanceof SyntaxError ? `line ${number} of the dataset is not valid JSON` : 'the dataset cannot be read';
    throw new TemperError('BadConfig', `${problem} (${file}): ${String(cause)}; scenarios are JSON lines`, { cause });
  }
}

async function* splitLines(texts: AsyncIterable<string>): AsyncGenerator<string> {
  const splitter = new LineSplitter();
  for await (const text of texts) yield* splitter.push(text);
  yield* splitter.end();
}

function checkScenario(value: unknown, place: string, remedy = 'give it one'): Scenario {
  const json = toJson(value, place);
  const { id } = (json ?? {}) as { id?: unknown };
  if (typeof id === 'string' && id !== '') return json as Scenario;
  const found = (JSON.stringify(json) ?? 'nothing').slice(0, 80);
  throw new TemperError('BadConfig', `${place} must be an object with a non-empty string id, got ${found}; ${remedy}`);
}

/** The value after a round trip through JSON, as another process will see it. */
function toJson(value: unknown, place: string): unknown {
  try {
    const json = JSON.parse(JSON.stringify(value) ?? 'null') as unknown;
    if (wellFormed(json) === json) return json;
    throw new Error('a text holds half of a surrogate pair, which is no character');
  } catch (cause) {
    throw new TemperError('BadConfig', `${place} must be JSON: ${String(cause)}; remove what is not JSON`, {
      cause,
    });
  }
}

function duplicate(id: string, first: string, second: string): TemperError {
  const rule = 'scenario ids must be unique, among evalScenarios too';
  return new TemperError('BadConfig', `${rule}, got ${JSON.stringify(id)} at ${first} and ${second}; rename one`);
}
