/** The stages: propose, remove near-duplicates, try, choose, split. Each goes on from what the store has of it. */
import { WorkFailed } from '../../core/contract/failures.ts';
import { findDistinct } from './near-duplicates.ts';
import { splitHeldOut } from '../../core/numbers/split-held-out.ts';
import { askStructured, printOutage } from '../../play/hosted/ask-structured.ts';
import { endIdleServers } from '../../play/mcp/servers.ts';
import { plural } from '../../core/reports/format.ts';
import type { MadeScenarios, MakePlan, MakeWorld, MadeScenario, ScenarioRow } from './make-plan.ts';
import { proposeQuestion, type KnownScenario } from './propose.ts';
import { tryScenarios } from './try-scenarios.ts';

/** Scenarios that one question asks for: more make an answer long, and alike. */
const MOST_PER_ROUND = 40;
/** Rounds beyond those that the count needs, for near-duplicates and infeasible scenarios. */
const FURTHER_ROUNDS = 4;
/** Tried beyond the count, so that some of those that are always solved can be left out. */
const SURPLUS = 1.25;

/** Scenarios to try, if all are feasible. */
function planProposals({ count, attempts }: Pick<MakePlan, 'count' | 'attempts'>): number {
  return attempts > 1 ? Math.ceil(count * SURPLUS) : count;
}

export async function makeScenarios(plan: MakePlan, world: MakeWorld): Promise<MadeScenarios> {
  try {
    return choose(await propose(plan, world), plan);
  } finally {
    await endIdleServers();
  }
}

interface Proposed {
  readonly tried: readonly MadeScenario[];
  readonly duplicates: number;
}

/** In rounds, each of which is told of the ones before. */
async function propose(plan: MakePlan, world: MakeWorld): Promise<Proposed> {
  const wanted = planProposals(plan);
  const planned = Math.ceil(wanted / MOST_PER_ROUND);
  const outage = printOutage(world.tell);
  const tried: MadeScenario[] = [];
  let duplicates = 0;
  for (let round = 1; round <= planned + FURTHER_ROUNDS; round++) {
    const feasible = tried.filter(isFeasible).length;
    if (feasible >= (round > planned ? plan.count : wanted)) break;
    const count = Math.min(MOST_PER_ROUND, wanted - feasible);
    const question = proposeQuestion({ ...plan, count, round, known: tried.map(toKnown) });
    const proposed = await askStructured(question, { ...world, model: plan.model, outage });
    const distinct = findDistinct(textsOf(proposed), textsOf(tried)).map((index) => proposed[index]!);
    duplicates += proposed.length - distinct.length;
    world.tell(describeRound(round, proposed.length, distinct.length));
    tried.push(...(await tryScenarios(distinct.slice(0, count), plan, world)));
  }
  return { tried, duplicates };
}

function describeRound(round: number, proposed: number, distinct: number): string {
  const repeated = proposed - distinct;
  const left = repeated === 0 ? '' : `, ${plural(repeated, 'near-duplicate')} removed`;
  return `round ${round}: ${plural(proposed, 'scenario')} proposed${left}`;
}

const textsOf = (rows: readonly ScenarioRow[]): string[] => rows.map(({ task }) => task);

function isFeasible({ solvedRate }: MadeScenario): boolean {
  return solvedRate !== 0;
}

function toKnown(scenario: MadeScenario): KnownScenario {
  return { task: scenario.task, isInfeasible: !isFeasible(scenario) };
}

/** Those that are sometimes solved first: the others teach a model of this strength nothing. */
function choose({ tried, duplicates }: Proposed, plan: MakePlan): MadeScenarios {
  const { count, attempts, seed, tryWith } = plan;
  const feasible = tried.filter(isFeasible);
  const isEasy = ({ solvedRate }: MadeScenario): boolean => attempts > 1 && solvedRate === 1;
  const ranked = [...feasible.filter((each) => !isEasy(each)), ...feasible.filter(isEasy)];
  const chosen = new Set(ranked.slice(0, count));
  const infeasible = tried.filter((each) => !isFeasible(each));
  requireSome(chosen.size, { tried, duplicates }, plan);
  const kept = feasible.filter((each) => chosen.has(each)).toSorted((a, b) => a.difficulty - b.difficulty);
  const share = Math.round((plan.heldOut * kept.length) / count);
  const heldOut = Math.min(Math.max(1, share), kept.length - 1);
  const easy = kept.filter(isEasy).length;
  return {
    ...splitHeldOut(kept, { count: heldOut, seed, stratumOf: ({ difficulty }) => difficulty }),
    infeasible,
    tooEasy: ranked.filter((each) => !chosen.has(each) && isEasy(each)),
    duplicates,
    notes: [
      ...(kept.length < count
        ? [`${kept.length} of ${count} scenarios could be made; run it with other --instructions for more`]
        : []),
      ...(easy > 0
        ? [`${tryWith.name} always solved ${easy} of the ${kept.length}, which were kept because there are no others`]
        : []),
    ],
  };
}

/** A training scenario and a held-out one are the least. */
function requireSome(chosen: number, { tried, duplicates }: Proposed, { model, count }: MakePlan): void {
  if (chosen >= 2) return;
  const unsolved = tried.filter((each) => !isFeasible(each)).length;
  throw new WorkFailed(
    `${model.hosted.name} proposed ${plural(tried.length + duplicates, 'scenario')}, ${duplicates} of them near-duplicates and ${unsolved} never solved: ${chosen} of ${count} can be used; pass --instructions, or another --model or --try-with`,
  );
}
