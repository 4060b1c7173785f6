/** Times of what happened, as the store knows them. Retries and lost workers are in Temporal's history. */
import pLimit from 'p-limit';
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import { formatReason } from '../../core/rules/settings.ts';
import {
  branchesPrefix,
  evalTimesKey,
  groupTimesKey,
  manifestTimesKey,
  stepsPrefix,
  type GroupPlace,
  type StepPlace,
} from '../../store/layout.ts';
import { childNumbers, GROUPS_AT_ONCE } from '../../store/records/children.ts';
import { ManifestTimesSchema, readStored, TimesFileSchema, type TimesFile } from '../../store/records/file-schemas.ts';
import { findClosed, readGiven } from '../../store/records/rewards/given-rewards.ts';
import { listGroups } from '../../store/records/groups/group-files.ts';
import type { Store } from '../../store/store.ts';
import type { LaneSpan, LanesView } from '../api/run-views.ts';
import type { ViewContext } from '../context/context.ts';
import { readCount } from '../api/query.ts';
import { requireHead, runCacheOf } from './run-cache.ts';

/** Steps that are shown if none are named, and at most. */
const DEFAULT_STEPS = 20;
const MAX_STEPS = 200;
/** Shorter ones are not worth a span. */
const LEAST_SECONDS = 0.1;

type LaneName = LanesView['lanes'][number]['name'];

interface PlacedSpan {
  readonly lane: LaneName;
  readonly span: LaneSpan;
}

const LANE_NAMES: readonly LaneName[] = ['rollout', 'judge', 'train', 'eval', 'wait'];

export async function viewLanes(context: ViewContext, run: string, query: URLSearchParams): Promise<LanesView> {
  const { store } = context;
  const head = await requireHead(context, run);
  const places = await listPlaces(store, run);
  const range = readRange(query, Math.max(0, ...places.map(({ step }) => step)));
  const asked = places.filter(({ step }) => step >= range.from && step <= range.to);
  const limit = pLimit(GROUPS_AT_ONCE);
  const stored = (await Promise.all(asked.map((place) => readSpans(store, place, limit)))).flat();
  const steps = asked.length === 0 ? [] : await runCacheOf(store).readSteps(head);
  const spans = withinTime([...stored, ...judgeSpans(steps, stored), ...pauseSpans(head.state)]);
  return { lanes: inLanes(spans) };
}

/** In the order of time; a lane in which nothing happened is left out. */
function inLanes(spans: readonly PlacedSpan[]): LanesView['lanes'] {
  return LANE_NAMES.flatMap((name) => {
    const own = spans.filter(({ lane }) => lane === name).map(({ span }) => span);
    return own.length === 0 ? [] : [{ name, spans: own.toSorted(byStart) }];
  });
}

function byStart(one: LaneSpan, other: LaneSpan): number {
  return one.startedAt < other.startedAt ? -1 : one.startedAt > other.startedAt ? 1 : 0;
}

interface StepRange {
  readonly from: number;
  readonly to: number;
}

function readRange(query: URLSearchParams, last: number): StepRange {
  const to = readCount(query, 'to') ?? last;
  const from = readCount(query, 'from') ?? to - DEFAULT_STEPS + 1;
  return { from: Math.max(0, from, to - MAX_STEPS + 1), to };
}

/** Without a pause that ended before the first of the steps. */
function withinTime(spans: readonly PlacedSpan[]): PlacedSpan[] {
  const ofSteps = spans.filter(({ span }) => span.step !== null);
  if (ofSteps.length === 0) return [...spans];
  const start = ofSteps.map(({ span }) => span.startedAt).reduce((first, at) => (at < first ? at : first));
  return spans.filter(({ span }) => span.step !== null || span.endedAt === null || span.endedAt >= start);
}

/** Steps of all branches: what a run did before it was rolled back took its time as well. */
async function listPlaces(store: Store, run: string): Promise<StepPlace[]> {
  const numbers = await childNumbers(store, branchesPrefix(run));
  const places = numbers.map(async (branch) =>
    (await childNumbers(store, stepsPrefix(run, branch))).map((step) => ({ run, branch, step })),
  );
  return (await Promise.all(places)).flat();
}

type Limit = ReturnType<typeof pLimit>;

async function readSpans(store: Store, place: StepPlace, limit: Limit): Promise<PlacedSpan[]> {
  const groups = await limit(() => listGroups(store, place));
  const read = await Promise.all([
    ...groups.map((group) => limit(() => readGroupSpans(store, { ...place, group }))),
    limit(() => readTrainSpans(store, place)),
    limit(() => readEvalSpans(store, place)),
  ]);
  return read.flat();
}

async function readGroupSpans(store: Store, place: GroupPlace): Promise<PlacedSpan[]> {
  const times = await readStored(store, groupTimesKey(place), TimesFileSchema);
  const played = playedSpan(place, times, { label: `group ${place.group}`, group: place.group });
  if (played === null) return [];
  const closed = findClosed(await readGiven(store, place));
  if (closed === undefined || played.endedAt === null) return [{ lane: 'rollout', span: played }];
  const label = `group ${place.group} · rewards from outside`;
  const waited: LaneSpan = { ...played, label, startedAt: played.endedAt, endedAt: closed.at, kind: 'wait' };
  return [
    { lane: 'rollout', span: played },
    { lane: 'wait', span: waited },
  ];
}

async function readEvalSpans(store: Store, place: StepPlace): Promise<PlacedSpan[]> {
  const times = await readStored(store, evalTimesKey(place), TimesFileSchema);
  const span = playedSpan(place, times, { label: 'evaluation', group: null });
  return span === null ? [] : [{ lane: 'eval', span }];
}

function playedSpan(
  { branch, step }: StepPlace,
  times: TimesFile | null,
  { label, group }: Pick<LaneSpan, 'label' | 'group'>,
): LaneSpan | null {
  if (times?.startedAt === undefined || times.endedAt === undefined) return null;
  return {
    label: `step ${step} · ${label}`,
    branch,
    step,
    group,
    startedAt: new Date(times.startedAt).toISOString(),
    endedAt: new Date(times.endedAt).toISOString(),
    ...workedBy(times['host'], times['activityAttempt']),
  };
}

/** The store does not keep why an earlier attempt ended. */
function workedBy(host: unknown, attempt: unknown): Pick<LaneSpan, 'attempt' | 'host' | 'kind'> {
  return {
    attempt: typeof attempt === 'number' ? attempt : 1,
    host: typeof host === 'string' ? host : null,
    kind: 'work',
  };
}

/** Time before the commit, by what the trainer says of its phases: waiting for the device, then the work. */
async function readTrainSpans(store: Store, place: StepPlace): Promise<PlacedSpan[]> {
  const times = await readStored(store, manifestTimesKey(place), ManifestTimesSchema);
  if (times === null) return [];
  const { wait = 0, ...phases } = (times['seconds'] ?? {}) as Readonly<Record<string, unknown>>;
  const seconds = Object.values(phases).reduce<number>((sum, value) => sum + secondsOf(value), 0);
  const endedAt = new Date(times.committedAt).getTime();
  const startedAt = new Date(endedAt - seconds * 1000).toISOString();
  const { branch, step } = place;
  const label = step === 0 ? 'step 0 · adapter' : `step ${step} · train`;
  const worked: LaneSpan = {
    label,
    branch,
    step,
    group: null,
    startedAt,
    endedAt: new Date(endedAt).toISOString(),
    ...workedBy(times['host'], times['attempt']),
  };
  const waitedSince = new Date(endedAt - (seconds + secondsOf(wait)) * 1000).toISOString();
  const waited: LaneSpan = {
    ...worked,
    label: `${label} · waits for the device`,
    startedAt: waitedSince,
    endedAt: startedAt,
    kind: 'wait',
  };
  return [
    ...(secondsOf(wait) >= LEAST_SECONDS ? [{ lane: 'train' as const, span: waited }] : []),
    { lane: 'train', span: worked },
  ];
}

function secondsOf(value: unknown): number {
  return typeof value === 'number' && value > 0 ? value : 0;
}

/** The curve tells how long a step's groups were judged: from the end of the last one that was played. */
function judgeSpans(steps: readonly StepSummary[], played: readonly PlacedSpan[]): PlacedSpan[] {
  const ends = new Map<number, string>();
  for (const { lane, span } of played)
    if (lane === 'rollout' && span.step !== null && span.endedAt !== null && span.endedAt > (ends.get(span.step) ?? ''))
      ends.set(span.step, span.endedAt);
  return steps.flatMap(({ step, seconds }) => {
    const startedAt = ends.get(step);
    const judged = seconds['judge'] ?? 0;
    if (startedAt === undefined || judged < LEAST_SECONDS) return [];
    const endedAt = new Date(Date.parse(startedAt) + judged * 1000).toISOString();
    const span = { ...ORDINARY, label: `step ${step} · judge`, step, startedAt, endedAt, kind: 'work' } as const;
    return [{ lane: 'judge', span }];
  });
}

/** The pause in which the run is; the store does not keep earlier ones. */
function pauseSpans(state: Pick<RunState, 'state' | 'pause'> | null): PlacedSpan[] {
  if (state?.state !== 'paused' || state.pause === null) return [];
  const { since, reason } = state.pause;
  const label = `paused${formatReason(reason)}`;
  const span = { ...ORDINARY, label, step: null, startedAt: since, endedAt: null, kind: 'pause' } as const;
  return [{ lane: 'wait', span }];
}

const ORDINARY = { branch: null, group: null, attempt: 1, host: null } as const;
