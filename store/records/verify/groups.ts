/** Checks a step's groups: files against their hashes, verdicts against rollouts, both against the plan. */
import pLimit from 'p-limit';

import type { GroupResult, RolloutInput, RunConfig } from '../../../core/contract/contract.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';
import { dealConversations, planGathered, planGathering, type GatheredGroup } from '../../../core/plan/production.ts';
import { planGroups, trainedGroups, type RewardRules, type RunPosition } from '../../../core/plan/step.ts';
import { hasWindow, planTopUp } from '../../../core/plan/window.ts';
import { adapterOf } from '../../../core/names/policy-name.ts';
import { SCHEMA_DEFAULTS } from '../../../core/contract/schema-defaults.ts';
import { isSupervisedStep } from '../../../core/rules/supervised.ts';
import { childNames } from '../children.ts';
import { parseRollouts, parseJudged, type StoredRollouts, type StoredVerdict } from '../groups/group-files.ts';
import { judgeByAgent, summariseUnjudged } from '../groups/group-result.ts';
import { decideGroup, type DecidedGroup } from '../groups/step-verdict.ts';
import { groupsPrefix, judgedKey, rolloutsKey, type GroupPlace } from '../../layout.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { CallRecord, Judged, Rollouts } from '../groups/trajectories.ts';
import type { NamedGroup, StoredStep } from './chain.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';
import { verifyGiven } from './given.ts';

export interface PlayedStep {
  step: StoredStep;
  position: RunPosition | null;
  /** Groups of the step that a manifest trains: its own, or a later step's. */
  named: readonly NamedGroup[];
  /** False for a step under way: what is missing may still come. */
  isDone: boolean;
}

const AT_ONCE = 4;

/** In plan order; null if a group's files are broken or its plan is not known. */
export async function verifyGroups(context: VerifyContext, played: PlayedStep): Promise<(DecidedGroup | null)[]> {
  const refs = played.named;
  const names = await childNames(context.store, groupsPrefix(played.step));
  const stored = names
    .filter((name) => /^\d+\.(rollouts|judged)\./.test(name))
    .map((name) => Number.parseInt(name, 10));
  const count = [...stored, ...refs.map(({ group }) => group)].reduce((most, group) => Math.max(most, group + 1), 0);
  const limit = pLimit(AT_ONCE);
  const named = new Map(refs.map((ref) => [ref.group, ref]));
  const verify = (group: number) => limit(() => verifyGroup(context, played, group, named.get(group) ?? null));
  const groups = await Promise.all(Array.from({ length: count }, (_, group) => verify(group)));
  checkCount(context, played, groups);
  return groups;
}

async function verifyGroup(
  context: VerifyContext,
  { step, position, isDone: isOver }: PlayedStep,
  group: number,
  ref: NamedGroup | null,
): Promise<DecidedGroup | null> {
  const config = plannedConfig(context, step);
  const isDone = isOver && (ref !== null || !isLeftOpen(context, config));
  const place = { ...step, group };
  const planned = config && position && planAny(config, position, group);
  const verdict = await verifyVerdict(context, place, ref, isDone);
  const played = await verifyRollouts(context, place, wantedRollouts(place, ref, verdict), isDone);
  if (played === null) return null;
  checkHeader(context, place, played.rollouts, planned);
  await verifyLedger(context, place, played, verdict, config);
  if (verdict !== null) checkVerdict(context, place, played, verdict.judged, findRules(context, step));
  return planned && decide(planned, played, verdict, config);
}

type PlannedGroup = RolloutInput | GatheredGroup;

/** Null: more groups than the step's conversations. */
function planAny(config: RunConfig, position: RunPosition, group: number): PlannedGroup | null {
  if (config.production === undefined) return planGroups(config, position, group, 1)[0]!;
  return planGathered(planGathering(config, position))[group] ?? null;
}

/** A script may gather groups that it does not train, and leave some unfinished; those of a window may wait for long. */
function isLeftOpen({ isLoop }: VerifyContext, config: RunConfig | null): boolean {
  return isLoop || (config !== null && hasWindow(config));
}

async function verifyLedger(
  context: VerifyContext,
  place: GroupPlace,
  played: StoredRollouts,
  verdict: StoredVerdict | null,
  config: RunConfig | null,
): Promise<void> {
  if (config?.external === undefined) return;
  const rules = { ...config.train, ...config, external: config.external };
  await verifyGiven(context, place, played, verdict?.judged ?? null, rules);
}

function decide(
  planned: PlannedGroup,
  { rollouts, sha256 }: StoredRollouts,
  verdict: StoredVerdict | null,
  config: RunConfig | null,
): DecidedGroup | null {
  if (verdict !== null) return decideGroup(planned, rollouts, verdict.judged, verdict.sha256);
  if (config === null || !hasWindow(config)) return null;
  return { result: summariseUnjudged(planned, rollouts, sha256), rewards: [] };
}

/** Rules of the step's rewards; null if only a script knows them. */
function findRules(context: VerifyContext, step: StoredStep): RewardRules | null {
  const train = step.commit?.manifest.train ?? null;
  return train === null && !context.isLoop ? (plannedConfig(context, step)?.train ?? null) : train;
}

/** Expected hash of the rollouts, and its source. */
interface Wanted {
  sha256: string;
  by: string;
}

function wantedRollouts(place: GroupPlace, ref: NamedGroup | null, verdict: StoredVerdict | null): Wanted | null {
  if (ref !== null) return { sha256: ref.rolloutsSha256, by: ref.by };
  return verdict && { sha256: verdict.judged.rolloutsSha256, by: judgedKey(place) };
}

async function verifyRollouts(
  { store, findings }: VerifyContext,
  place: GroupPlace,
  wanted: Wanted | null,
  isDone: boolean,
): Promise<StoredRollouts | null> {
  const key = rolloutsKey(place);
  const bytes = await store.read(key);
  if (bytes === null) {
    if (isDone || wanted !== null) findings.problem('rollouts', key, 'it is missing');
    return null;
  }
  findings.count('rollouts');
  const sha256 = hashBytes(bytes);
  if (wanted !== null && sha256 !== wanted.sha256) {
    findings.problem('rollouts', key, `${wanted.by} records its hash as ${wanted.sha256}, but it has ${sha256}`);
    return null;
  }
  return findings.attempt('rollouts', key, () => parseRollouts(bytes, key));
}

async function verifyVerdict(
  { store, findings }: VerifyContext,
  place: GroupPlace,
  ref: NamedGroup | null,
  isDone: boolean,
): Promise<StoredVerdict | null> {
  const key = judgedKey(place);
  const bytes = await store.read(key);
  if (bytes === null) {
    if (isDone) findings.problem('verdicts', key, 'it is missing');
    return null;
  }
  findings.count('verdicts');
  const sha256 = hashBytes(bytes);
  if (ref !== null && sha256 !== ref.judgedSha256) {
    findings.problem('verdicts', key, `it must have the hash ${ref.judgedSha256}, it has ${sha256}`);
    return null;
  }
  return findings.attempt('verdicts', key, async () => parseJudged(bytes, key));
}

/** The header names the scenario; the calls name the policy. */
function checkHeader(
  context: VerifyContext,
  place: GroupPlace,
  { header, attempts }: Rollouts,
  planned: PlannedGroup | null,
): void {
  const key = rolloutsKey(place);
  const isPlaced = header.branch === place.branch && header.step === place.step && header.group === place.group;
  if (!isPlaced)
    context.findings.problem(
      'rollouts',
      key,
      `it is group ${header.group} of step ${header.step}, branch ${header.branch}`,
    );
  if (header.attempts !== attempts.length)
    context.findings.problem('rollouts', key, `it must hold ${header.attempts} attempts, it has ${attempts.length}`);
  const calls = attempts.flatMap((attempt) => attempt.calls);
  const strange = calls.filter((call) => !adaptersOf(call, header, planned).includes(call.adapterSha256));
  const samplers = new Set(strange.map(({ adapterSha256 }) => adapterSha256));
  if (samplers.size > 0)
    context.findings.problem(
      'rollouts',
      key,
      `it names the adapter ${header.adapterSha256}, but ${[...samplers].join(', ')} answered`,
    );
  compareInputs(context, key, header.inputsSha256, planned?.inputsSha256 ?? null);
}

/** Adapters that may have answered a call: that of its role. Without its plan, nobody knows who plays a role. */
function adaptersOf(
  { role, adapterSha256 }: CallRecord,
  header: Rollouts['header'],
  planned: PlannedGroup | null,
): (string | null)[] {
  if (role === undefined) return [header.adapterSha256];
  if (planned === null || !('policy' in planned)) return [adapterSha256];
  const { policy, roles = {}, seats = {} } = planned;
  const seat = Object.hasOwn(roles, role) ? { checkpoint: policy, policy: roles[role]! } : seats[role];
  return seat === undefined ? [] : [adapterOf(seat.checkpoint, seat.policy) ?? null];
}

function checkVerdict(
  { findings }: VerifyContext,
  place: GroupPlace,
  { rollouts, sha256 }: StoredRollouts,
  judged: Judged,
  rules: RewardRules | null,
): void {
  const key = judgedKey(place);
  const { header, attempts } = rollouts;
  if (judged.rolloutsSha256 !== sha256)
    findings.problem('verdicts', key, `it judges the rollouts ${judged.rolloutsSha256}, but the store has ${sha256}`);
  if (judged.inputsSha256 !== header.inputsSha256)
    findings.problem('verdicts', key, 'it was made from other inputs than its rollouts');
  const isComplete = judged.rewards.length === attempts.length;
  // The rollouts contain the agent's own verdict only.
  const own = judgeByAgent(rollouts, sha256, rules ?? SCHEMA_DEFAULTS.train);
  const isRight = judged.judge !== 'agent' || hasSameRewards(own, judged);
  const isCosted = rules === null || JSON.stringify(own.overlongCosts) === JSON.stringify(judged.overlongCosts);
  if (!isComplete || !isRight || !isCosted) findings.problem('verdicts', key, 'its rewards do not match the rollouts');
}

function hasSameRewards(own: Judged, judged: Judged): boolean {
  const [expected, found] = [own, judged].map(({ rewards, roleRewards = null, turnRewards = null }) =>
    canonicalJson({ rewards, roleRewards, turnRewards }),
  );
  return expected === found;
}

function countPlanned(config: RunConfig, step: number, known: GroupResult[]): number {
  if (config.production !== undefined) return dealConversations(config, step).length;
  const { groupsPerStep, replacementRounds } = config;
  let planned = groupsPerStep;
  for (let round = 0; round < replacementRounds; round++) {
    planned += groupsPerStep - trainedGroups(known.slice(0, planned)).length;
  }
  return planned;
}

/** Expects the planned groups, and one replacement for each without signal. */
function checkCount(
  context: VerifyContext,
  { step, position, isDone }: PlayedStep,
  groups: (DecidedGroup | null)[],
): void {
  const config = plannedConfig(context, step);
  const known = groups.flatMap((group) => group?.result ?? []);
  if (config === null || context.isLoop || !isDone || step.step === 0 || known.length < groups.length) return;
  if (isSupervisedStep(config, step.step)) return;
  const planned = hasWindow(config)
    ? position && planTopUp(config, position).length
    : countPlanned(config, step.step, known);
  if (planned !== null && planned !== groups.length)
    context.findings.problem('rollouts', groupsPrefix(step), `it must hold ${planned} groups, it has ${groups.length}`);
}
