import { describeHeldOutLoss } from '../../views/charts/held-out.ts';
import type { LeagueScore, RunConfig, StepSummary } from '../../core/contract/contract.ts';
import type { Agreement } from '../../core/numbers/agreement.ts';
import { describeCosts, describeUsage } from '../../core/rules/costs.ts';
import { describeRoles } from '../../core/reports/describe-config.ts';
import { REVIEW } from '../../core/rules/external-rewards.ts';
import { describeSpending } from '../../core/rules/judge-spending.ts';
import { describeLineage } from '../../core/names/lineage.ts';
import { splitMetrics } from '../../core/rules/named-rewards.ts';
import { formatReason, describeChange } from '../../core/rules/settings.ts';
import { listAwaited } from '../../store/records/rewards/awaited-groups.ts';
import type { Manifest } from '../../store/records/runs/manifest.ts';
import { readAgreement } from '../../store/records/rewards/review-agreement.ts';
import { isEnded, readManifest, requireRun, type StoredRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { describeAgreement } from '../../views/charts/agreement.ts';
import type { FoundAdvisory } from '../../views/runs/advisories.ts';
import { readAdvisories } from '../../views/runs/stored-advisories.ts';
import { withPending } from '../watch/under-way.ts';
import { EXIT } from '../command-line/errors.ts';
import {
  describeHeldOutChange,
  describeMetrics,
  formatDuration,
  formatNumber,
  formatSteps,
  olderThan,
  plural,
} from '../../core/reports/format.ts';
import { printJson, type Output } from '../terminal/output.ts';
import type { PendingActivity, PendingOf } from '../watch/pending.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { ProjectPlace } from '../../operations/operation.ts';
import { flattenEval, summariseRun, type RunSummary } from '../runs/run-summary.ts';
import type { showCommand } from './command.ts';

const SERVER_WITHIN_MS = 2000;
const UNATTENDED = 'server     not running; the run continues once a server runs (start temper train or temper dev)';
const OWNED = 'script     trains this run; start the script again to continue';

export async function show(context: CommandContext<typeof showCommand>): Promise<number> {
  const { flags, args, project, env, output } = context;
  const store = await openProjectStore(project, env);
  const found = await requireRun(store, args.run);
  const recorded = summariseRun(found, store.uri);
  const isLoop = found.file.loop !== undefined;
  const pending = !isEnded(recorded) && !isLoop ? await askServer(context, { store, run: args.run }) : null;
  const summary = withPending(recorded, pending ?? []);
  const awaited = await describeAwaitedNow(store, found.file.config, recorded);
  const newest = await readManifest(store, { run: args.run, branch: summary.branch, step: summary.step });
  const engine = newest === null ? null : engineOf(newest);
  const roles = describeRoles(found.file.config);
  const league = newest?.league ?? null;
  const agreement = await readReviewed(store, found);
  const advisories = await readAdvisories(store, found, Date.now());
  const shown = { engine, roles, league, awaited, advisories, lastStep: found.steps.at(-1), ...agreement };
  if (flags.json) printJson(output, { ...toJson(summary, pending), ...toJsonFields(shown) });
  else print(output, { ...summary, ...shown }, pending, isLoop ? OWNED : UNATTENDED);
  return EXIT.ok;
}

/** Agreement of the reviewers; nothing unless people review the run. */
async function readReviewed(store: Store, { file, state }: StoredRun): Promise<Pick<Shown, 'agreement'>> {
  if (file.config.judge !== REVIEW || state === null) return {};
  return { agreement: (await readAgreement(store, state)).all };
}

/** Rewards that the run waits for, as the store has them now; null if there are none. */
async function describeAwaitedNow(
  store: Store,
  { run, external }: RunConfig,
  recorded: Pick<RunSummary, 'state'>,
): Promise<string | null> {
  if (external === undefined || isEnded(recorded)) return null;
  const groups = await listAwaited(store, run);
  if (groups.length === 0) return null;
  const missing = groups.reduce((count, group) => count + group.missing.length, 0);
  const times = groups.flatMap(({ playedAt }) => playedAt ?? []);
  const since = times.length === 0 ? '' : `, the oldest played at ${new Date(Math.min(...times)).toISOString()}`;
  return `${plural(missing, 'reward')} in ${plural(groups.length, 'group')}${since}; see temper rewards ${run}`;
}

/** Null if no server answered in time. */
async function askServer(place: ProjectPlace, of: PendingOf): Promise<PendingActivity[] | null> {
  const { tryServer } = await import('../../operations/server.ts');
  const { readPending } = await import('../watch/pending.ts');
  const server = await tryServer(place, SERVER_WITHIN_MS);
  if (server === null) return null;
  try {
    return await readPending(server, of, SERVER_WITHIN_MS);
  } finally {
    await server.close();
  }
}

function toJson({ result, ...summary }: RunSummary, pending: PendingActivity[] | null): object {
  return {
    ...summary,
    evalBefore: flattenEval(result.evalBefore),
    evalAfter: flattenEval(result.evalAfter),
    pendingActivities: pending,
  };
}

function toJsonFields({ advisories, lastStep, ...shown }: ShownFields): object {
  return { ...shown, advisories: advisories.map(({ look: _look, ...told }) => told), lastStep: lastStep ?? null };
}

/** State with its phase; a paused run has none. */
function describeState({ state, phase, pause }: RunSummary): string {
  if (state === 'paused' && pause !== null) return `paused since ${pause.since}${formatReason(pause.reason)}`;
  return phase === null ? state : `${state} (${phase})`;
}

/** Engine that sampled a step, and whether it repeats samples (docs/engine.md). */
function engineOf({ platform: { engine, engineFlags } }: Manifest): ShownEngine {
  if (engine === undefined) return { name: 'embedded', flags: null, repeatsSamples: true };
  return { name: String(engine), flags: String(engineFlags ?? ''), repeatsSamples: false };
}

interface ShownEngine {
  readonly name: string;
  readonly flags: string | null;
  /** True if a repeated run samples the same tokens. */
  readonly repeatsSamples: boolean;
}

function describeEngine({ name, repeatsSamples }: ShownEngine): string {
  const once = 'each call is answered once, and steps repeat from their recorded rollouts';
  return repeatsSamples ? `${name}: a repeated run samples the same tokens` : `${name}: ${once}; samples do not repeat`;
}

/** `past: step 0 won 0.55 of 24, step 10 …`: share of the points that the trained roles won. */
function describeScores([role, scores]: [string, readonly LeagueScore[]]): string {
  const met = scores.filter(({ played }) => played > 0);
  const shares = met.map(({ step, played, won }) => `step ${step} ${formatNumber(won / played)} of ${played}`);
  return `${role}: won against ${shares.join(', ') || 'nobody yet'}`;
}

function roleRows({ roles, league }: ShownRoles): [string, string][] {
  const scores = Object.entries(league ?? {}).map(describeScores);
  return [
    ...roles.map((role): [string, string] => ['role', role]),
    ...scores.map((text): [string, string] => ['league', text]),
  ];
}

interface ShownRoles {
  readonly roles: readonly string[];
  readonly league: Manifest['league'] | null;
}

interface ShownFields extends ShownRoles {
  readonly engine: ShownEngine | null;
  readonly awaited: string | null;
  readonly advisories: readonly FoundAdvisory[];
  readonly lastStep: StepSummary | undefined;
  /** Absent unless people review the run. */
  readonly agreement?: Agreement;
}

type Shown = RunSummary & ShownFields;

function print(output: Output, summary: Shown, pending: PendingActivity[] | null, unattended: string): void {
  const { evalBefore, evalAfter } = summary.result;
  const rows: [string, string | null][] = [
    ['run', `${summary.run}: ${summary.agent} on ${summary.baseModel}`],
    ['parent', summary.parent],
    ['state', describeState(summary)],
    ['failure', summary.failure],
    ['held out', evalBefore === null ? null : describeHeldOutChange(evalBefore, evalAfter, summary.step)],
    ['step', `${summary.step} of ${summary.steps}, reward ${formatNumber(summary.reward)}`],
    ['rewards', describeNamedRewards(summary.lastStep)],
    ['branch', describeLineage(summary.lineage)],
    ['before', evalBefore === null ? null : describeMetrics(evalBefore.reward, evalBefore.metrics)],
    [
      'after',
      evalAfter === null
        ? null
        : describeMetrics(evalAfter.reward, evalAfter.metrics) + olderThan(summary.step, evalAfter),
    ],
    ['loss', summary.heldOutLoss === null ? null : describeHeldOutLoss(summary.heldOutLoss)],
    ['engine', summary.engine === null ? null : describeEngine(summary.engine)],
    ...roleRows(summary),
    ['judge', summary.judge === null ? null : describeJudge(summary.judge, summary.judging)],
    ['review', describeReview(summary.agreement)],
    ['time', formatDuration(summary.wallSeconds)],
    ...costRows(summary),
    ['adapter', summary.adapterSha256],
    ['store', summary.storeUri],
    ['awaited', summary.awaited],
    ['waiting', describeWaiting(summary)],
    ...countSame((pending ?? []).map(({ text }) => text)).map((text): [string, string] => ['pending', text]),
    ...summary.changes.map((change): [string, string] => ['changed', describeChange(change, summary.branch)]),
    ...summary.notes.map((note): [string, string] => ['note', note]),
    ...summary.advisories.map((advisory): [string, string] => [advisory.level, describeAdvisory(advisory)]),
  ];
  for (const [label, text] of rows) if (text !== null) output.line(`${label.padEnd(9)}  ${text}`);
  if (!isEnded(summary) && pending === null) output.line(unattended);
}

/** The last step's means by name, before their weights: `correct 0.512 · short 0.400`; null if it has none. */
function describeNamedRewards(lastStep: StepSummary | undefined): string | null {
  const named = Object.entries(splitMetrics(lastStep?.metrics ?? {}).rewards);
  return named.length === 0 ? null : named.map(([name, value]) => `${name} ${formatNumber(value)}`).join(' · ');
}

function describeAdvisory({ text, remedy, steps }: FoundAdvisory): string {
  return `${text}${steps === null ? '' : ` (${formatSteps(steps)})`}; ${remedy}`;
}

function costRows({ costs }: RunSummary): [string, string | null][] {
  if (costs === null) return [];
  return [
    ['tokens', describeUsage(costs.usage)],
    ['cost', describeCosts(costs)],
  ];
}

function describeJudge(judge: string, judging: RunSummary['judging']): string {
  return judging === null ? judge : `${judge}: ${describeSpending(judging)}`;
}

/** The rewards that a run waits for have a line of their own. */
function describeWaiting({ awaited, phase, waitingFor }: Shown): string | null {
  return awaited !== null && phase === 'judge' ? null : waitingFor;
}

function describeReview(agreement: Agreement | undefined): string | null {
  return agreement === undefined ? null : describeAgreement(agreement);
}

/** Merges equal lines, because groups of a step mostly wait for the same thing. */
function countSame(texts: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count === 1 ? text : `${count} × ${text}`));
}
