/** A few scenarios that stand for all: for the hosted model, and for the check of the rubric. */
import type { Scenario, ScenarioSource } from '../../play/agent.ts';
import { readScenarios } from '../../play/scenarios.ts';

const MOST_SCENARIOS = 3;
/** Scenarios that are looked at, the first ones of a file. */
const SCENARIOS_READ = 1000;

export async function readExamples(source: ScenarioSource<Scenario>): Promise<Scenario[]> {
  return spread(await readScenarios(source, SCENARIOS_READ));
}

/** The easiest, a middling and the hardest one; by their order where they have no difficulty. */
function spread(scenarios: readonly Scenario[]): Scenario[] {
  const sorted = scenarios.toSorted((left, right) => difficultyOf(left) - difficultyOf(right));
  const last = sorted.length - 1;
  const places = Array.from({ length: MOST_SCENARIOS }, (_, index) =>
    Math.round((index * last) / (MOST_SCENARIOS - 1)),
  );
  return [...new Set(places)].flatMap((place) => sorted[place] ?? []);
}

function difficultyOf(scenario: Scenario): number {
  const { difficulty } = scenario as Scenario & { difficulty?: unknown };
  return typeof difficulty === 'number' ? difficulty : 0;
}

/** The input as the model is told it; all of the scenario, if a person gave it other members. */
export function textOf(scenario: Scenario): string {
  const { task } = scenario as Scenario & { task?: unknown };
  return typeof task === 'string' ? task : JSON.stringify(scenario);
}
