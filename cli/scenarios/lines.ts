/** Results of `temper scenarios`, as text and as JSON. */
import type { JudgeSpending } from '../../core/contract/contract.ts';
import { describeSpending } from '../../core/rules/judge-spending.ts';
import { mean } from '../../core/numbers/statistics.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import { createTable } from '../terminal/table.ts';
import type { MadeScenarios, MadeScenario } from './make-plan.ts';
import type { ScenarioOrigin } from './origin.ts';

interface Paths {
  readonly train: string;
  readonly heldOut: string;
}

const SHOWN_INFEASIBLE = 5;
const TELL_EVERY_MS = 2000;
const SHOWN_CHARACTERS = 160;

/** Prints what was spent, every few seconds. */
export function spendingTeller(tell: (line: string) => void): (spent: JudgeSpending) => void {
  let toldAt = performance.now();
  return (spent) => {
    if (performance.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = performance.now();
    tell(`so far: ${describeSpending(spent)}`);
  };
}

export function originLine(origin: ScenarioOrigin): string {
  if (origin.kind === 'task') return `task: ${origin.task}`;
  const { tools, resources } = origin.server;
  return `MCP server: ${plural(tools.length, 'tool')}, ${plural(resources.length, 'resource')}`;
}

export function scenarioLines(made: MadeScenarios, paths: Paths, spent: JudgeSpending): string[] {
  const { train, heldOut, infeasible, tooEasy, duplicates, notes } = made;
  const shown = infeasible.slice(0, SHOWN_INFEASIBLE).flatMap(describeInfeasible);
  const more = infeasible.length - SHOWN_INFEASIBLE;
  return [
    ...(infeasible.length === 0 ? [] : [`${plural(infeasible.length, 'scenario')} never solved, left out:`, ...shown]),
    ...(more > 0 ? [`  and ${more} more; see --json`] : []),
    ...(tooEasy.length === 0 ? [] : [`${plural(tooEasy.length, 'scenario')} always solved, left out`]),
    ...(duplicates === 0 ? [] : [`${plural(duplicates, 'near-duplicate')} left out`]),
    ...difficultyTable(train, heldOut),
    ...notes.map((note) => `note: ${note}`),
    `cost: ${describeSpending(spent)}`,
    `${plural(train.length, 'scenario')} in ${paths.train}, ${heldOut.length} held out in ${paths.heldOut}`,
  ];
}

function describeInfeasible({ task, explanation }: MadeScenario): string[] {
  return [`  ${clip(task)}`, ...(explanation === null ? [] : [`    ${clip(explanation)}`])];
}

function clip(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length <= SHOWN_CHARACTERS ? line : `${line.slice(0, SHOWN_CHARACTERS)}…`;
}

function difficultyTable(train: readonly MadeScenario[], heldOut: readonly MadeScenario[]): string[] {
  const difficulties = [...new Set([...train, ...heldOut].map(({ difficulty }) => difficulty))].toSorted(
    (a, b) => a - b,
  );
  const rows = difficulties.map((difficulty) => {
    const of = (list: readonly MadeScenario[]) => list.filter((each) => each.difficulty === difficulty);
    const rates = of([...train, ...heldOut]).flatMap(({ solvedRate }) => solvedRate ?? []);
    return [`${difficulty}`, `${of(train).length}`, `${of(heldOut).length}`, formatNumber(mean(rates))];
  });
  return createTable(['difficulty', 'training', 'held out', 'solved'], rows).split('\n');
}

export function viewScenarios(made: MadeScenarios, paths: Paths, cost: JudgeSpending): object {
  const { train, heldOut, infeasible, tooEasy, duplicates, notes } = made;
  return { files: paths, train, heldOut, infeasible, tooEasy, duplicates, notes, cost };
}
