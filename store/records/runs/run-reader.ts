/** Reads a run's files in the store for `show`, `report` and `runs`, without a server. */
import pLimit from 'p-limit';
import type { z } from 'zod';

import type { EvalResult, Prepared, RunState, StepSummary } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { childNames, GROUPS_AT_ONCE } from '../children.ts';
import { readCurve } from './curve.ts';
import { refuseDeleted } from './deletions.ts';
import {
  AttemptSchema,
  checkRunOf,
  EvalFileSchema,
  parseStored,
  PreparedFileSchema,
  readStored,
  RolloutHeaderSchema,
  RunFileSchema,
  ScenarioLineSchema,
  StateFileSchema,
  TimesFileSchema,
  type TimesFile,
} from '../file-schemas.ts';
import { listGroups, readRollouts, readVerdict } from '../groups/group-files.ts';
import { decodeJson, parseStoredJson } from '../../bytes/json.ts';
import * as layout from '../../layout.ts';
import type { GroupPlace, StepPlace } from '../../layout.ts';
import { parseCommit, type Commit, type Manifest } from './manifest.ts';
import { readScenarioLines } from './scenario-files.ts';
import type { Store } from '../../store.ts';
import { inPlayOrder, type AttemptRecord, type Judged, type Rollouts } from '../groups/trajectories.ts';

/** `run.json`: the original run. */
export type RunFile = z.output<typeof RunFileSchema>;

export interface StoredRun {
  file: RunFile;
  /** Null before the first record of the run's workflow. */
  state: RunState | null;
  steps: StepSummary[];
}

export interface PlayedGroup {
  group: number;
  rollouts: Rollouts;
  /** Null if the group was played and is not judged yet. */
  judged: Judged | null;
  judgedSha256: string | null;
}

/** One line of the scenarios' file. */
export interface ScenarioLine {
  id: string;
  scenario: unknown;
}

/** Null for a name that no run of this store has. */
export async function readRun(store: Store, run: string): Promise<StoredRun | null> {
  const file = await readRunFile(store, run);
  if (file === null) return null;
  const state = await readState(store, run);
  return { file, state, steps: await readCurve(store, run, state) };
}

/** Null for a name that no run of this store has. */
export async function readRunFile(store: Store, run: string): Promise<RunFile | null> {
  const file = await readStored(store, layout.runKey(run), RunFileSchema);
  if (file !== null) checkRunOf(file.config, run, layout.runKey(run), renamed(run, file.config.run));
  return file;
}

/** Names of all runs, sorted; folders without a `run.json` are none. */
export async function listRuns(store: Store): Promise<string[]> {
  const names = await childNames(store, layout.RUNS_PREFIX);
  const limit = pLimit(GROUPS_AT_ONCE);
  const files = await Promise.all(names.map((name) => limit(() => store.read(layout.runKey(name)))));
  return names.filter((_, index) => files[index] !== null);
}

export async function readState(store: Store, run: string): Promise<RunState | null> {
  const key = layout.stateKey(run);
  const bytes = await store.read(key);
  return bytes === null ? null : parseState(decodeJson(bytes, key), run);
}

export function parseState(value: unknown, run: string): RunState | null {
  const key = layout.stateKey(run);
  const state = parseStored(StateFileSchema.nullable(), value, key);
  if (state !== null) checkRunOf(state, run, key, REWRITTEN);
  return state;
}

/** Remedy for a broken display file. */
export const REWRITTEN = 'it is only for display: delete it, and the run writes it again when it continues';

export function renamed(folder: string, run: string): string {
  return `rename the folder runs/${folder} to runs/${run}, or restore it from a copy`;
}

export async function isUnderWay(store: Store, run: string): Promise<boolean> {
  const state = await readState(store, run);
  return state === null || !isEnded(state);
}

/** The run does nothing until it is started again. */
export function isEnded({ state }: { readonly state: RunState['state'] | 'starting' }): boolean {
  return state === 'completed' || state === 'stopped' || state === 'cancelled' || state === 'failed';
}

export async function readSteps(store: Store, run: string): Promise<StepSummary[]> {
  return readCurve(store, run, await readState(store, run));
}

export function readPrepared(store: Store, run: string): Promise<Prepared | null> {
  return readStored(store, layout.preparedKey(run), PreparedFileSchema);
}

/** Scenarios from `from` to before `to`, one after the other: a run may have very many. */
export async function* streamStoredScenarios(
  store: Store,
  { scenarios }: Prepared,
  from = 0,
  to = Infinity,
): AsyncGenerator<ScenarioLine> {
  for await (const line of readScenarioLines(store, scenarios, from, to))
    yield parseStored(ScenarioLineSchema, parseStoredJson(line, scenarios.key), scenarios.key);
}

export async function readStoredScenarios(
  store: Store,
  prepared: Prepared,
  from = 0,
  to = Infinity,
): Promise<ScenarioLine[]> {
  const lines: ScenarioLine[] = [];
  for await (const line of streamStoredScenarios(store, prepared, from, to)) lines.push(line);
  return lines;
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
  const limit = pLimit(GROUPS_AT_ONCE);
  const groups = await listGroups(store, place);
  const played = await Promise.all(groups.map((group) => limit(() => readGroup(store, { ...place, group }))));
  return played.filter((group) => group !== null);
}

export async function readGroup(store: Store, place: GroupPlace): Promise<PlayedGroup | null> {
  const rollouts = await readInOrder(store, layout.rolloutsKey(place), layout.groupTimesKey(place));
  if (rollouts === null) return null;
  const { judged = null, sha256 = null } = (await readVerdict(store, place)) ?? {};
  return { group: place.group, rollouts, judged, judgedSha256: sha256 };
}

export function readEval(store: Store, place: StepPlace): Promise<EvalResult | null> {
  return readStored(store, layout.evalKey(place), EvalFileSchema);
}

export function readEvalRollouts(store: Store, place: StepPlace): Promise<Rollouts | null> {
  return readInOrder(store, layout.evalRolloutsKey(place), layout.evalTimesKey(place));
}

/** How long an evaluation was played; null if it is not known. */
export async function readEvalSeconds(store: Store, place: StepPlace): Promise<number | null> {
  return (await readStored(store, layout.evalTimesKey(place), TimesFileSchema))?.seconds ?? null;
}

/** With the calls of each attempt in the order in which they were made: as a sidecar tells it, or else the record. */
async function readInOrder(store: Store, key: string, timesKey: string): Promise<Rollouts | null> {
  const stored = await readRollouts(store, key);
  if (stored === null) return null;
  const { header, attempts } = checkRollouts(stored.rollouts, key);
  const times = await readStored(store, timesKey, TimesFileSchema);
  const calls = (record: AttemptRecord) => callOrder(record, times).map((index) => record.calls[index]!);
  return { header, attempts: attempts.map((record) => ({ ...record, calls: calls(record) })) };
}

/** Checks that text and numbers have their types: a model, an agent or another store wrote them. */
export function checkRollouts({ header, attempts }: Rollouts, key: string): Rollouts {
  parseStored(RolloutHeaderSchema, header, key);
  for (const attempt of attempts) parseStored(AttemptSchema, attempt, key);
  return { header, attempts };
}

/** Indexes of an attempt's calls in the order in which they were made: as a sidecar tells it, or else the record. */
export function callOrder(
  { attempt, calls }: Pick<AttemptRecord, 'attempt' | 'calls'>,
  times: Pick<TimesFile, 'callOrders'> | null,
): number[] {
  const told = times?.callOrders?.[attempt];
  const isWhole = told?.length === calls.length && told.every((index) => calls[index] !== undefined);
  if (told !== undefined && isWhole) return told;
  return inPlayOrder(calls).map((call) => calls.indexOf(call));
}

/** The run with its curve, or a BadConfig that names the runs there are. */
export async function requireRun(store: Store, run: string): Promise<StoredRun> {
  return (await readRun(store, run)) ?? refuseUnknown(store, run);
}

/** The same without its state and curve. */
export async function requireRunFile(store: Store, run: string): Promise<RunFile> {
  return (await readRunFile(store, run)) ?? refuseUnknown(store, run);
}

async function refuseUnknown(store: Store, run: string): Promise<never> {
  await refuseDeleted(store, run);
  const others = await listRuns(store);
  const known = others.length === 0 ? 'it has none yet' : `it has ${others.join(', ')}`;
  throw badConfig(`no run ${run} in the store ${store.uri} (${known}); start it with temper train`);
}
