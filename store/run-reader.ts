/** Plain reads of what runs leave in the store, for people: `show`, `report`, `runs`. No server is asked. */
import type { Checkpoint, EvalResult, Prepared, RunConfig, RunState, StepSummary } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import { NOT_STEERED } from '../core/lineage.ts';
import { childNames } from './children.ts';
import { readCurve } from './curve.ts';
import { decodeJson, decodeJsonLines } from './json.ts';
import * as layout from './layout.ts';
import type { GroupPlace, StepPlace } from './layout.ts';
import { parseCommit, type Commit, type Manifest } from './manifest.ts';
import type { Store } from './store.ts';
import { decodeRollouts, inPlayOrder, type AttemptRecord, type Judged, type Rollouts } from './trajectories.ts';

/** `run.json`: the run as it was started. */
export interface RunFile {
  schema: 1;
  config: RunConfig;
  agentCodeSha256: string;
  versions: Record<string, string>;
  /** Null where the run began with a fresh adapter. */
  parent: Checkpoint | null;
  /** Where a script owns the loop: whose model it is. Its groups, and when they are trained, are in no plan. */
  loop?: { project: string; model: string };
}

export interface Run {
  file: RunFile;
  /** Null before the first record of the run's workflow. */
  state: RunState | null;
  steps: StepSummary[];
}

export interface PlayedGroup {
  group: number;
  rollouts: Rollouts;
  /** Null where the group was played and is not judged yet. */
  judged: Judged | null;
}

/** One line of the scenarios' file. */
export interface ScenarioLine {
  id: string;
  scenario: unknown;
}

/** Null for a name that no run of this store has. */
export async function readRun(store: Store, run: string): Promise<Run | null> {
  const file = await readJson<RunFile>(store, layout.runKey(run));
  if (file === null) return null;
  const state = await readState(store, run);
  return { file, state, steps: await readCurve(store, run, state) };
}

/** Names of all runs, sorted; folders without a `run.json` are none. */
export async function listRuns(store: Store): Promise<string[]> {
  const names = await childNames(store, layout.RUNS_PREFIX);
  const files = await Promise.all(names.map((name) => store.read(layout.runKey(name))));
  return names.filter((_, index) => files[index] !== null);
}

export async function readState(store: Store, run: string): Promise<RunState | null> {
  const state = await readJson<RunState>(store, layout.stateKey(run));
  return state && { ...NOT_STEERED, ...state };
}

/** Nothing moves it any more, unless somebody starts it again. */
export function isEnded({ state }: { readonly state: RunState['state'] | 'starting' }): boolean {
  return state === 'completed' || state === 'stopped' || state === 'cancelled' || state === 'failed';
}

export async function readSteps(store: Store, run: string): Promise<StepSummary[]> {
  return readCurve(store, run, await readState(store, run));
}

export function readPrepared(store: Store, run: string): Promise<Prepared | null> {
  return readJson(store, layout.preparedKey(run));
}

export async function readScenarios(store: Store, prepared: Prepared): Promise<ScenarioLine[]> {
  return decodeJsonLines(await store.getBlob(prepared.scenarios), prepared.scenarios.key) as ScenarioLine[];
}

export async function readManifest(store: Store, place: StepPlace): Promise<Manifest | null> {
  return (await readCommit(store, place))?.manifest ?? null;
}

export async function readCommit(store: Store, place: StepPlace): Promise<Commit | null> {
  const bytes = await store.read(layout.manifestKey(place));
  return bytes === null ? null : parseCommit(bytes, layout.manifestKey(place));
}

/** The hash that is noted beside a manifest: of the newest one nothing else tells it. A note that cannot be read tells nothing. */
export async function readNotedHash(store: Store, place: StepPlace): Promise<string | null> {
  const bytes = await store.read(layout.manifestTimesKey(place));
  try {
    const noted = bytes && (decodeJson(bytes, 'times') as { manifestSha256?: unknown } | null)?.manifestSha256;
    return typeof noted === 'string' ? noted : null;
  } catch {
    return null;
  }
}

/** Groups of a step in plan order, those that are not trained included. */
export async function readGroups(store: Store, place: StepPlace): Promise<PlayedGroup[]> {
  const names = await childNames(store, layout.groupsPrefix(place));
  const groups = names.filter((name) => name.endsWith('.rollouts.jsonl.gz')).map((name) => Number.parseInt(name, 10));
  const ordered = groups.toSorted((a, b) => a - b);
  const played = await Promise.all(ordered.map((group) => readGroup(store, { ...place, group })));
  return played.filter((group) => group !== null);
}

export async function readGroup(store: Store, place: GroupPlace): Promise<PlayedGroup | null> {
  const rollouts = await readRollouts(store, layout.rolloutsKey(place), layout.groupTimesKey(place));
  if (rollouts === null) return null;
  return { group: place.group, rollouts, judged: await readJson<Judged>(store, layout.judgedKey(place)) };
}

export function readEval(store: Store, place: StepPlace): Promise<EvalResult | null> {
  return readJson(store, layout.evalKey(place));
}

export function readEvalRollouts(store: Store, place: StepPlace): Promise<Rollouts | null> {
  return readRollouts(store, layout.evalRolloutsKey(place), layout.evalTimesKey(place));
}

/** With the calls of each attempt in the order in which they were made: as a sidecar tells it, or else the record. */
async function readRollouts(store: Store, key: string, timesKey: string): Promise<Rollouts | null> {
  const bytes = await store.read(key);
  if (bytes === null) return null;
  const { header, attempts } = await decodeRollouts(bytes, key);
  const times = await readJson<{ callOrders?: Record<number, number[]> }>(store, timesKey);
  return { header, attempts: attempts.map((record) => inOrder(record, times?.callOrders?.[record.attempt])) };
}

function inOrder(record: AttemptRecord, order: readonly number[] | undefined): AttemptRecord {
  const asked = order?.map((index) => record.calls[index]).filter((call) => call !== undefined);
  const calls = asked?.length === record.calls.length ? asked : inPlayOrder(record.calls);
  return { ...record, calls };
}

export async function readJson<T>(store: Store, key: string): Promise<T | null> {
  const bytes = await store.read(key);
  if (bytes === null) return null;
  return decodeJson(bytes, key) as T;
}

/** The run, or a BadConfig that names those there are. */
export async function requireRun(store: Store, run: string): Promise<Run> {
  const found = await readRun(store, run);
  if (found !== null) return found;
  const others = await listRuns(store);
  const known = others.length === 0 ? 'it has none yet' : `it has ${others.join(', ')}`;
  throw new TemperError('BadConfig', `no run ${run} in the store ${store.uri} (${known}); start it with temper train`);
}
