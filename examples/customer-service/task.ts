/** One customer's call, drawn by a seed: a database of its own, what the customer wants, and how it should end. */
import { seededRandom } from 'temper-rl';
import type { Names } from './database.ts';
import { Desk } from './desk.ts';
import type { Call, Domain, Situation, Template, Value } from './domain.ts';
import { drawSituation } from './draw.ts';

export interface Scenario {
  readonly id: string;
  readonly seed: number;
}

export interface Task {
  readonly situation: string;
  readonly desk: Desk;
  /** Rows that the situation knows. */
  readonly names: Names;
  readonly says: readonly string[];
  readonly wants: string;
  /** Calls of a perfect agent. */
  readonly calls: readonly FilledCall[];
  readonly statements: readonly string[];
  /** Hash of the database as it should be in the end. */
  readonly expected: string;
}

export interface FilledCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, Value>>;
}

/** From here on all ids of a seed's database are held out. */
const FIRST_EXAM_SEED = 1_000_000;

export function trainingScenarios(domain: Domain, count: number): Scenario[] {
  return scenarios(domain, 0, count);
}

export function examScenarios(domain: Domain, count: number): Scenario[] {
  return scenarios(domain, FIRST_EXAM_SEED, count);
}

/** Situations come in turn. */
function scenarios(domain: Domain, firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = firstSeed + index;
    return { id: `${situationOf(domain, seed).name}-${seed}`, seed };
  });
}

export function drawTask(domain: Domain, { seed }: Scenario): Task {
  const situation = situationOf(domain, seed);
  const random = seededRandom(domain.name, seed);
  const { database, names } = drawSituation(domain, situation, random, seed >= FIRST_EXAM_SEED);
  const text = (template: Template) => String(database.fill(template, names));
  const calls = situation.calls.map((call) => fillCall(call, (template) => database.fill(template, names)));
  const solved = new Desk(domain, database.copy());
  for (const call of calls) solved.call(call.tool, call.arguments);
  return {
    situation: situation.name,
    desk: new Desk(domain, database),
    names,
    says: situation.says.map(text),
    wants: text(situation.wants),
    calls,
    statements: situation.statements.map(text),
    expected: solved.digest(),
  };
}

function situationOf({ situations }: Domain, seed: number): Situation {
  return situations[seed % situations.length]!;
}

function fillCall(call: Call, fill: (template: Template) => Value): FilledCall {
  const filled = Object.entries(call.arguments).map(
    ([name, value]) => [name, typeof value === 'number' ? value : fill(value)] as const,
  );
  return { tool: call.tool, arguments: Object.fromEntries(filled) };
}
