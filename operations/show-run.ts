import type { LeagueScore, RunConfig, RunState, StepSummary } from '../core/contract/contract.ts';
import { TemperError, WorkFailed } from '../core/contract/failures.ts';
import { describeLineage } from '../core/names/lineage.ts';
import type { Agreement } from '../core/numbers/agreement.ts';
import { describeRoles } from '../core/reports/describe-config.ts';
import {
  describeHeldOutChange,
  describeMetrics,
  formatDuration,
  formatNumber,
  formatSteps,
  olderThan,
  plural,
} from '../core/reports/format.ts';
import { describeCosts, describeUsage } from '../core/rules/costs.ts';
import { REVIEW } from '../core/rules/external-rewards.ts';
import { describeSpending } from '../core/rules/judge-spending.ts';
import { splitMetrics } from '../core/rules/named-rewards.ts';
import { describeChange, formatReason } from '../core/rules/settings.ts';
import { listAwaited } from '../store/records/rewards/awaited-groups.ts';
import { readAgreement } from '../store/records/rewards/review-agreement.ts';
import type { Manifest } from '../store/records/runs/manifest.ts';
import { isEnded, readManifest, requireRunFile } from '../store/records/runs/run-reader.ts';
import type { Store } from '../store/store.ts';
import type { Advisory, RunView } from '../views/api/run-views.ts';
import { describeAgreement } from '../views/charts/agreement.ts';
import { describeHeldOutLoss, findHeldOutLoss } from '../views/charts/held-out.ts';
import { runCacheOf } from '../views/runs/run-cache.ts';
import { viewRun } from '../views/runs/run.ts';
import type { Place } from './operation.ts';
import type { FoundRun, ShownEngine } from './results.ts';
import type { PendingActivity } from './pending/pending-activity.ts';
import { withPending, worstWait } from './pending/under-way.ts';

const SERVER_WITHIN_MS = 2000;

export async function findRun(place: Place, run: string): Promise<FoundRun> {
  const store = await place.store();
  const file = await requireRunFile(store, run).catch(async (error: unknown) => {
    // A store that is damaged or does not answer is no run that has not begun.
    const isUnknown = error instanceof TemperError && error.type === 'BadConfig';
    throw (isUnknown ? await whyNotBegun(place, store, run) : null) ?? error;
  });
  const view = await viewRun({ store, now: Date.now, index: null }, run);
  const { row, state } = view;
  const steps = await runCacheOf(store).readSteps({ run, file, state });
  const isScript = file.loop !== undefined;
  const pendingActivities = isEnded(row) || isScript ? null : await askServer(place, store, run);
  const { phase, waitingFor } = withPending({ ...row, phase: state?.phase ?? null }, pendingActivities ?? []);
  return {
    ...view,
    phase,
    waitingFor,
    pendingActivities,
    lastStep: steps.at(-1) ?? null,
    heldOutLoss: findHeldOutLoss(steps),
    ...(await readNewest(store, view)),
    awaited: isEnded(row) ? null : await describeAwaited(store, file.config),
    agreement: await readReviewed(store, view),
    isScript,
    store: store.uri,
  };
}

/** A run whose first activity fails is known to the server alone. */
async function whyNotBegun(place: Place, store: Store, run: string): Promise<Error | null> {
  const wait = worstWait((await askServer(place, store, run)) ?? []);
  return wait && new WorkFailed(`${run} has not begun; it waits for ${wait.text}`);
}

/** Null if no server answered in time. */
async function askServer(place: Place, store: Store, run: string): Promise<PendingActivity[] | null> {
  const { tryServer } = await import('./server.ts');
  const { readPending } = await import('./pending/read-pending.ts');
  const server = await tryServer(place, SERVER_WITHIN_MS);
  if (server === null) return null;
  try {
    return await readPending(server, { store, run }, SERVER_WITHIN_MS);
  } finally {
    await server.close();
  }
}

async function readNewest(store: Store, { row, state }: RunView): Promise<Pick<FoundRun, 'engine' | 'league'>> {
  const newest = await readManifest(store, { run: row.run, branch: state?.branch ?? 0, step: row.step });
  return { engine: newest && engineOf(newest), league: newest?.league ?? null };
}

async function readReviewed(store: Store, { config, state }: RunView): Promise<Agreement | null> {
  return config.judge === REVIEW && state !== null ? (await readAgreement(store, state)).all : null;
}

function engineOf({ platform: { engine, engineFlags } }: Manifest): ShownEngine {
  if (engine === undefined) return { name: 'embedded', flags: null, repeatsSamples: true };
  return { name: String(engine), flags: String(engineFlags ?? ''), repeatsSamples: false };
}

async function describeAwaited(store: Store, { run, external }: RunConfig): Promise<string | null> {
  const groups = external === undefined ? [] : await listAwaited(store, run);
  if (groups.length === 0) return null;
  const missing = groups.reduce((count, group) => count + group.missing.length, 0);
  const times = groups.flatMap(({ playedAt }) => playedAt ?? []);
  const since = times.length === 0 ? '' : `, the oldest played at ${new Date(Math.min(...times)).toISOString()}`;
  return `${plural(missing, 'reward')} in ${plural(groups.length, 'group')}${since}; see temper rewards ${run}`;
}

type Row = readonly [label: string, text: string | null];

export function shownLines(shown: FoundRun): string[] {
  const { row, pendingActivities: pending } = shown;
  const rows = [...stateRows(shown), ...resultRows(shown), ...settingRows(shown), ...noteRows(shown)];
  const lines = rows.flatMap(([label, text]) => (text === null ? [] : [`${label.padEnd(9)}  ${text}`]));
  return isEnded(row) || pending !== null ? lines : [...lines, shown.isScript ? OWNED : UNATTENDED];
}

const UNATTENDED = 'server     not running; the run continues once a server runs (start temper train or temper dev)';
const OWNED = 'script     trains this run; start the script again to continue';

function stateRows(shown: FoundRun): Row[] {
  const { row, state } = shown;
  return [
    ['run', `${row.run}: ${row.agent} on ${row.baseModel}`],
    ['parent', row.parent],
    ['state', describeState(shown)],
    ['failure', state?.failure ?? null],
  ];
}

function settingRows(shown: FoundRun): Row[] {
  const { row, state, config } = shown;
  return [
    ['engine', shown.engine && describeEngine(shown.engine)],
    ...roleRows(shown),
    ['judge', config.judge == null ? null : describeJudge(config.judge, state?.judging ?? null)],
    ['review', shown.agreement && describeAgreement(shown.agreement)],
    ['time', formatDuration(row.wallSeconds)],
    ...costRows(state),
    ['adapter', state?.adapterSha256 ?? null],
    ['store', shown.store],
  ];
}

/** What it waits for, and what could be said of it. */
function noteRows(shown: FoundRun): Row[] {
  const { state, pendingActivities: pending } = shown;
  return [
    ['awaited', shown.awaited],
    // The rewards that a run waits for have a line of their own.
    ['waiting', shown.awaited !== null && shown.phase === 'judge' ? null : shown.waitingFor],
    ...countSame((pending ?? []).map(({ text }) => text)).map((text): Row => ['pending', text]),
    ...(state?.changes ?? []).map((change): Row => ['changed', describeChange(change, state?.branch)]),
    ...(state?.notes ?? []).map((note): Row => ['note', note]),
    ...shown.advisories.map((advisory): Row => [advisory.level, describeAdvisory(advisory)]),
  ];
}

/** State with its phase; a paused run has none. */
function describeState({ row, state, phase }: FoundRun): string {
  const pause = state?.pause ?? null;
  if (row.state === 'paused' && pause !== null) return `paused since ${pause.since}${formatReason(pause.reason)}`;
  return phase === null ? row.state : `${row.state} (${phase})`;
}

/** What it has reached: on held-out scenarios, by its last step, and on which branch. */
function resultRows({ row, state, lastStep, heldOutLoss }: FoundRun): Row[] {
  const [before, after] = [state?.evalBefore ?? null, state?.evalAfter ?? null];
  return [
    ['held out', before && describeHeldOutChange(before, after, row.step)],
    ['step', `${row.step} of ${row.steps}, reward ${formatNumber(row.reward)}`],
    ['rewards', describeNamedRewards(lastStep)],
    ['branch', describeLineage(state?.lineage ?? [])],
    ['before', before && describeMetrics(before.reward, before.metrics)],
    ['after', after && describeMetrics(after.reward, after.metrics) + olderThan(row.step, after)],
    ['loss', heldOutLoss && describeHeldOutLoss(heldOutLoss)],
  ];
}

/** The last step's means by name, before their weights: `correct 0.512 · short 0.400`; null if it has none. */
function describeNamedRewards(lastStep: StepSummary | null): string | null {
  const named = Object.entries(splitMetrics(lastStep?.metrics ?? {}).rewards);
  return named.length === 0 ? null : named.map(([name, value]) => `${name} ${formatNumber(value)}`).join(' · ');
}

function describeEngine({ name, repeatsSamples }: ShownEngine): string {
  const once = 'each call is answered once, and steps repeat from their recorded rollouts';
  return repeatsSamples ? `${name}: a repeated run samples the same tokens` : `${name}: ${once}; samples do not repeat`;
}

function roleRows({ config, league }: FoundRun): Row[] {
  return [
    ...describeRoles(config).map((role): Row => ['role', role]),
    ...Object.entries(league ?? {}).map((scores): Row => ['league', describeScores(scores)]),
  ];
}

/** `past: step 0 won 0.55 of 24, step 10 …`: share of the points that the trained roles won. */
function describeScores([role, scores]: [string, readonly LeagueScore[]]): string {
  const met = scores.filter(({ played }) => played > 0);
  const shares = met.map(({ step, played, won }) => `step ${step} ${formatNumber(won / played)} of ${played}`);
  return `${role}: won against ${shares.join(', ') || 'nobody yet'}`;
}

function describeJudge(judge: string, judging: RunState['judging']): string {
  return judging === null ? judge : `${judge}: ${describeSpending(judging)}`;
}

function costRows(state: RunState | null): Row[] {
  const costs = state?.costs;
  if (costs === undefined) return [];
  return [
    ['tokens', describeUsage(costs.usage)],
    ['cost', describeCosts(costs)],
  ];
}

function describeAdvisory({ text, remedy, steps }: Advisory): string {
  return `${text}${steps === null ? '' : ` (${formatSteps(steps)})`}; ${remedy}`;
}

/** Merges equal lines, because groups of a step mostly wait for the same thing. */
function countSame(texts: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count === 1 ? text : `${count} × ${text}`));
}
