/** Which scenarios are trained and which are held out: decided once for a run, and never against what its parent decided. */
import type { RunConfig } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import { permutation } from '../core/plan-deal.ts';
import { deriveSeed } from '../core/seeds.ts';
import { isSupervisedOnly } from '../core/supervised.ts';
import type { Agent, Scenario } from '../play/agent.ts';
import { checkUnique, readScenarios } from '../play/scenarios.ts';
import { readPrepared, readRun, readStoredScenarios } from '../store/records/run-reader.ts';
import type { Store } from '../store/store.ts';

export interface ScenarioSplit {
  train: Scenario[];
  evaluation: Scenario[];
  heldOut: boolean;
}

/** Ids of the scenarios that a fork's parent was trained on, and of those held out from it. */
interface Lineage {
  trained: ReadonlySet<string>;
  held: ReadonlySet<string>;
}

/** The share held out if the agent names no evaluation scenarios. */
const HELD_OUT_SHARE = 0.1;

export async function splitScenarios(store: Store, agent: Agent, config: RunConfig): Promise<ScenarioSplit> {
  const scenarios = await readScenarios(agent.scenarios, config.maxScenarios);
  if (scenarios.length === 0) throw tooFew(agent, 'scenarios', 'one', 0);
  if (agent.evalScenarios === undefined) return holdOut(agent, scenarios, config, await readLineage(store, config));
  const evaluation = await readScenarios(agent.evalScenarios, config.evalScenarios);
  if (evaluation.length === 0) throw tooFew(agent, 'evalScenarios', 'one', 0);
  checkUnique({ scenarios, evalScenarios: evaluation });
  return { train: scenarios, evaluation, heldOut: false };
}

/** Drawn by the run's seed; both parts keep the agent's order. A fork holds out what its parent did, then what is new. */
function holdOut(
  agent: Agent,
  scenarios: Scenario[],
  { seed, evalScenarios }: RunConfig,
  lineage: Lineage,
): ScenarioSplit {
  if (scenarios.length < 2)
    throw tooFew(agent, 'scenarios', 'two (a tenth is held out for evaluation)', scenarios.length);
  checkUnique({ scenarios });
  const count = Math.min(evalScenarios, Math.max(1, Math.floor(scenarios.length * HELD_OUT_SHARE)));
  const rank = (index: number) => rankOf(scenarios[index]?.id ?? '', lineage);
  const order = permutation(scenarios.length, deriveSeed([seed, 'held-out'])).filter(
    (index) => rank(index) !== TRAINED,
  );
  const drawn = new Set(order.toSorted((a, b) => rank(a) - rank(b)).slice(0, count));
  if (drawn.size === 0) throw allTrained(agent, scenarios.length);
  return {
    train: scenarios.filter((_, index) => !drawn.has(index)),
    evaluation: scenarios.filter((_, index) => drawn.has(index)),
    heldOut: true,
  };
}

const TRAINED = 2;

/** The order of holding out: the parent's held-out scenarios, unseen ones, and never those it was trained on. */
function rankOf(id: string, { held, trained }: Lineage): number {
  if (held.has(id)) return 0;
  return trained.has(id) ? TRAINED : 1;
}

/** Nothing for a run that begins with a fresh adapter. */
async function readLineage(store: Store, config: RunConfig): Promise<Lineage> {
  const run = await findPlayingAncestor(store, config);
  const prepared = run === null ? null : await readPrepared(store, run);
  if (prepared === null) return { trained: new Set(), held: new Set() };
  const ids = (await readStoredScenarios(store, prepared)).map(({ id }) => id);
  return {
    trained: new Set(ids.slice(0, prepared.trainScenarios)),
    held: new Set(ids.slice(prepared.trainScenarios)),
  };
}

/** Supervised runs assign no scenarios; their parent may have, so its cursor is kept. */
async function findPlayingAncestor(store: Store, { parent }: RunConfig): Promise<string | null> {
  const passed = new Set<string>();
  for (let run = parent?.run ?? null; run !== null && !passed.has(run);) {
    passed.add(run);
    const config = (await readRun(store, run))?.file.config;
    if (config === undefined || !isSupervisedOnly(config)) return run;
    run = config.parent?.run ?? null;
  }
  return null;
}

function tooFew({ name }: Agent, list: string, least: string, found: number): TemperError {
  return new TemperError(
    'BadConfig',
    `${list} of the agent ${name} must hold at least ${least}, got ${found}; add some`,
  );
}

function allTrained({ name }: Agent, count: number): TemperError {
  return new TemperError(
    'BadConfig',
    `scenarios of the agent ${name} must hold at least one that the parent was not trained on, but it was trained on all ${count}; add some, or give the agent evalScenarios`,
  );
}
