/** Which scenarios are trained and which are held out: decided once for a run, and never against what its parent decided. */
import type { HubDataset, Prepared, RunConfig } from '../core/contract/contract.ts';
import { badConfig, type TemperError } from '../core/contract/failures.ts';
import { permutation } from '../core/plan/deal.ts';
import { deriveSeed } from '../core/numbers/seeds.ts';
import { countHeldOut, drawSample } from '../core/numbers/split-held-out.ts';
import { isSupervisedOnly } from '../core/rules/supervised.ts';
import type { Agent } from '../play/agent.ts';
import {
  openScenarios,
  SAMPLED_FROM,
  spreadValue,
  UniqueIds,
  type OpenScenarios,
  type ReadScenario,
} from '../play/scenarios.ts';
import type { Patience } from '../play/sources/ask-again.ts';
import { encodeJson } from '../store/bytes/json.ts';
import { readPrepared, readRun, streamStoredScenarios } from '../store/records/runs/run-reader.ts';
import { ONE_BLOB_BYTES } from '../store/records/runs/scenario-files.ts';
import type { Store } from '../store/store.ts';
import { LineSpool } from './line-spool.ts';

/** Scenarios that were read and assigned, to be written to the store. */
export interface ScenarioSplit {
  /** JSON lines, those for training first. */
  lines(): AsyncGenerator<Uint8Array>;
  counts: Pick<Prepared, 'trainScenarios' | 'evalScenarios' | 'evalScenariosOf'>;
  heldOut: boolean;
  /** Data sets that they were read from. */
  datasets: HubDataset[];
  close(): Promise<void>;
}

/** Ids of the scenarios that a fork's parent was trained on, and of those held out from it. */
interface Lineage {
  trained: ReadonlySet<string>;
  held: ReadonlySet<string>;
}

export async function splitScenarios(
  store: Store,
  agent: Agent,
  config: RunConfig,
  patience: Patience = {},
): Promise<ScenarioSplit> {
  const spool = new LineSpool(ONE_BLOB_BYTES);
  const unique = new UniqueIds();
  const datasets: HubDataset[] = [];
  const values: string[] = [];
  const read = async (list: 'scenarios' | 'evalScenarios', source: Agent['scenarios'], limit: number) => {
    const open = openScenarios(source, limit, patience);
    const ids = await spoolScenarios(spool, unique, list, open, ({ scenario }) => {
      if (list === 'evalScenarios') values.push(spreadValue(scenario, agent.spreadBy));
    });
    datasets.push(...[open.origin() ?? []].flat());
    return ids;
  };
  try {
    const ids = await read('scenarios', agent.scenarios, config.maxScenarios);
    if (ids.length === 0) throw tooFew(agent, 'scenarios', 'one', 0);
    if (agent.evalScenarios === undefined) {
      const held = holdOut(agent, ids, config, await readLineage(store, config));
      const counts = { trainScenarios: ids.length - held.size, evalScenarios: held.size };
      return toSplit(spool, { isTrained: (index) => !held.has(index), held }, { counts, heldOut: true, datasets });
    }
    const all = await read('evalScenarios', agent.evalScenarios, SAMPLED_FROM);
    if (all.length === 0) throw tooFew(agent, 'evalScenarios', 'one', 0);
    const held = new Set(drawSample(all, config.evalScenarios, values).map((index) => ids.length + index));
    const sampled = held.size < all.length ? { evalScenariosOf: all.length } : {};
    const counts = { trainScenarios: ids.length, evalScenarios: held.size, ...sampled };
    return toSplit(spool, { isTrained: (index) => index < ids.length, held }, { counts, heldOut: false, datasets });
  } catch (error) {
    await spool.close();
    throw error;
  }
}

/** Returns the ids, in order. */
async function spoolScenarios(
  spool: LineSpool,
  unique: UniqueIds,
  list: string,
  open: OpenScenarios,
  onRead: (read: ReadScenario) => void,
): Promise<string[]> {
  const ids: string[] = [];
  unique.begin(list, open);
  for await (const read of open.scenarios) {
    unique.add(read);
    onRead(read);
    const { scenario } = read;
    ids.push(scenario.id);
    await spool.add(encodeJson({ id: scenario.id, scenario }));
  }
  return ids;
}

/** Both parts keep the agent's order. */
function toSplit(
  spool: LineSpool,
  { isTrained, held }: { isTrained: (index: number) => boolean; held: ReadonlySet<number> },
  split: Pick<ScenarioSplit, 'counts' | 'heldOut' | 'datasets'>,
): ScenarioSplit {
  return {
    async *lines() {
      yield* spool.select(isTrained);
      yield* spool.select((index) => held.has(index));
    },
    ...split,
    close: () => spool.close(),
  };
}

/** Indexes that are drawn by the run's seed. A fork holds out what its parent did, then what is new. */
function holdOut(
  agent: Agent,
  ids: readonly string[],
  { seed, evalScenarios }: RunConfig,
  lineage: Lineage,
): ReadonlySet<number> {
  if (ids.length < 2) throw tooFew(agent, 'scenarios', 'two (a tenth is held out for evaluation)', ids.length);
  const count = countHeldOut(ids.length, evalScenarios);
  const rank = (index: number) => rankOf(ids[index] ?? '', lineage);
  const order = permutation(ids.length, deriveSeed([seed, 'held-out'])).filter((index) => rank(index) !== TRAINED);
  const drawn = new Set(order.toSorted((a, b) => rank(a) - rank(b)).slice(0, count));
  if (drawn.size === 0) throw allTrained(agent, ids.length);
  return drawn;
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
  const ids: string[] = [];
  for await (const { id } of streamStoredScenarios(store, prepared)) ids.push(id);
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
  return badConfig(`${list} of the agent ${name} must hold at least ${least}, got ${found}; add some`);
}

function allTrained({ name }: Agent, count: number): TemperError {
  return badConfig(
    `scenarios of the agent ${name} must hold at least one that the parent was not trained on, but it was trained on all ${count}; add some, or give the agent evalScenarios`,
  );
}
