/** One group, played by the script's own functions, recorded and journaled as an agent's attempts are, and published. */
import { hostname } from 'node:os';

import type { Checkpoint } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { findMetricNameProblem, isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { planLoopGroup, type LoopGroup, type PlannedLoopGroup } from './plan-loop.ts';
import { planRoles } from '../../core/plan/step.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { groupJournalPrefix, groupTimesKey, validationJournalPrefix, type GroupPlace } from '../../store/layout.ts';
import { encodeRollouts, type AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Scenario } from '../../play/agent.ts';
import { Attempts } from '../../play/play-attempts.ts';
import { SYSTEM_CLOCK } from '../../play/connections/clock.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import { playersOf } from '../../play/roles/role-definition.ts';
import { withTurns, type PlayedTurns } from '../../play/recorder/turns.ts';
import { byAttempt, type TrajectoriesByAttempt } from './attempt-trajectories.ts';
import { gatheredKey, readGathered, type StoredGroup } from './gathered-group.ts';
import type { LoopRun } from './loop-run.ts';
import { ScriptAgent } from './script-agent.ts';
import { TrajectoryGroup } from './trajectory-group.ts';
import { describeTrajectories, keepOrder, rewardsOfTurns } from './trajectory-record.ts';
import type { Trajectory } from './trajectory.ts';

export type AfterEach = (
  group: TrajectoryGroup,
) => TrajectoryGroup | null | undefined | Promise<TrajectoryGroup | null | undefined>;

export interface GroupWork {
  run: LoopRun;
  group: TrajectoryGroup;
  planned: LoopGroup;
  /** The policy when the gathering began. */
  policy: Checkpoint;
  afterEach: AfterEach | null;
  signal: AbortSignal;
  /** Called with every attempt that is over. */
  onAttempt: (outcome: { trajectories: readonly Trajectory[] } | { error: unknown }) => void;
}

interface Played {
  attempts: AttemptRecord[];
  orders: Record<number, number[]>;
  /** Turn numbers by attempt. */
  turns: ReadonlyMap<number, PlayedTurns['numbers']>;
  /** Absent if it failed. */
  trajectories: TrajectoriesByAttempt;
}

/** Found where a script before this one finished it. */
export async function findOrPlay(work: GroupWork): Promise<{ stored: StoredGroup; isNew: boolean }> {
  const { run } = work;
  const { split, step, group } = work.planned;
  const plan = planLoopGroup(run.config, work.policy, work.planned);
  const place = { run: run.name, branch: 0, step, group };
  const found = await readGathered(run.store, split, place);
  const stored = found ?? (await playAndPublish(work, plan, place));
  const recorded = stored.rollouts.header.inputsSha256;
  if (recorded === plan.inputsSha256) return { stored, isNew: found === null };
  throw new TemperError(
    'StepConflict',
    `group ${group} of step ${step} of ${run.name} (${split}) was already gathered with other attempts or metadata (inputs ${recorded}, now ${plan.inputsSha256}); gather the same groups in the same order, or start a new model`,
  );
}

async function playAndPublish(work: GroupWork, plan: PlannedLoopGroup, place: GroupPlace): Promise<StoredGroup> {
  const { run, afterEach, policy } = work;
  const startedAt = Math.round(SYSTEM_CLOCK.now());
  const played = await play(work, plan, place);
  const judged = await applyAfterEach(work, played, afterEach, plan);
  const completed = played.attempts.map((record) => complete(record, played, judged));
  const attempts = withTurns(completed, (attempt) => turnsOf(attempt, played, judged));
  const orders = Object.fromEntries(
    played.attempts.map((record, index) => [
      record.attempt,
      keepOrder(played.orders[record.attempt] ?? [], record, completed[index]!),
    ]),
  );
  const { inputsSha256, step, group, scenarioId, metadata } = plan;
  const header = {
    schema: 1 as const,
    inputsSha256,
    branch: 0,
    step,
    group,
    scenarioId,
    scenario: group,
    adapterSha256: policy.adapterSha256,
    attempts: attempts.length,
    metadata,
    ...(judged === null ? { isDropped: true } : {}),
  };
  await run.store.publish(gatheredKey(plan.split, place), await encodeRollouts({ header, attempts }));
  if (plan.split === 'train') {
    const seconds = (SYSTEM_CLOCK.now() - startedAt) / 1000;
    const times = { seconds, startedAt, host: hostname(), pid: process.pid, callOrders: orders };
    await run.store.replace(groupTimesKey(place), encodeJson(times));
  }
  return (await readGathered(run.store, plan.split, place))!;
}

async function play(work: GroupWork, plan: PlannedLoopGroup, place: GroupPlace): Promise<Played> {
  const { run, group, planned, signal, policy } = work;
  const { store, backend, config } = run;
  const isTraining = planned.split === 'train';
  const recorders = new Map<number, Recorder>();
  const players = playersOf({ policy, ...planRoles(config) });
  const script = new ScriptAgent(work, { plan, players, recorderOf: (attempt) => recorders.get(attempt)! });
  const playing = new Attempts({
    agent: script.agent,
    planned: group.attempts.map((_, attempt) => ({
      attempt,
      scenarioIndex: place.group,
      scenario: { id: plan.scenarioId, attempt } as Scenario,
      ...(players && { players }),
    })),
    concurrency: group.attempts.length,
    engine: backend.engine,
    segments: await store.openJournal(isTraining ? groupJournalPrefix(place) : validationJournalPrefix(place)),
    policy: { model: policyName(policy), adapterSha256: policy.adapterSha256 },
    mode: isTraining ? 'train' : 'eval',
    rollout: config.rollout,
    place: { seed: plan.seed, branch: 0, step: place.step },
    attemptKey: (attempt) => `${run.name}.0.${place.step}.${isTraining ? '' : 'validation-'}${place.group}.${attempt}`,
    signal,
    isFresh: () => true,
    tagsChoices: true,
    onRecorder: (attempt, recorder) => void recorders.set(attempt, recorder),
  });
  const attempts = await playing.play();
  script.printOtherFailures(attempts);
  // Too many failures: the next script, mended, plays this group again.
  signal.throwIfAborted();
  const turns = new Map(attempts.map(({ attempt }) => [attempt, playing.turnsOf(attempt)?.numbers ?? new Map()]));
  return { attempts, orders: playing.callOrders(), turns, trajectories: script.trajectories };
}

/** Applies the script's `afterEach` to a played group: other rewards, fewer attempts, or null. */
async function applyAfterEach(
  { group }: GroupWork,
  { attempts, trajectories }: Played,
  afterEach: AfterEach | null,
  { metadata }: PlannedLoopGroup,
): Promise<TrajectoriesByAttempt | null> {
  const kept = attempts.flatMap(({ attempt, status }) => (status === 'ok' ? (trajectories.get(attempt) ?? []) : []));
  if (afterEach === null) return byAttempt(kept);
  const exceptions = attempts.flatMap(({ attempt, failure }) => (failure === null ? [] : [{ attempt, ...failure }]));
  const given = new TrajectoryGroup(kept, { metadata: { ...group.metadata, ...metadata } });
  given.exceptions = exceptions;
  const judged = await afterEach(given);
  if (!judged) return null;
  for (const trajectory of judged) checkJudged(trajectory);
  return byAttempt(judged.trajectories);
}

/** Metrics that `rulerScoreGroup` adds. */
const SCORED: readonly string[] = ['agentReward', 'rulerScore'];

function checkJudged(trajectory: Trajectory): void {
  const { origin, reward, metrics } = trajectory;
  rewardsOfTurns(trajectory);
  if (origin === null)
    throw badConfig(
      'afterEach must return trajectories of the group that it was given; copy one with trajectory.copy({ reward })',
    );
  const problem = findMetricNameProblem(Object.keys(metrics).filter((name) => !SCORED.includes(name)));
  if (problem !== null) throw badConfig(`${problem} (in afterEach)`);
  if (!isReward(reward))
    throw badConfig(`afterEach must leave as rewards ${REWARD_RULE}, got ${reward}; remove the trajectory`);
}

/** An attempt that the script took out is trained no more, and says only which turn is which. */
function turnsOf(
  attempt: number,
  { turns, trajectories }: Played,
  judged: TrajectoriesByAttempt | null,
): PlayedTurns | null {
  const numbers = turns.get(attempt);
  const rewards = new Map((judged?.get(attempt) ?? []).flatMap((trajectory) => [...rewardsOfTurns(trajectory)]));
  if (numbers === undefined || !trajectories.has(attempt)) return null;
  // A judge of a script's trajectories reads their messages, which the script put in order.
  return { numbers, rewards, showsOrder: false };
}

/** An attempt that was taken out stays in the store, without a reward. */
function complete(
  record: AttemptRecord,
  { trajectories }: Played,
  judged: TrajectoriesByAttempt | null,
): AttemptRecord {
  const played = trajectories.get(record.attempt);
  if (record.status !== 'ok' || played === undefined) return record;
  const kept = judged?.get(record.attempt);
  if (kept !== undefined) return describeTrajectories(record, kept);
  const { roleRewards: _none, ...described } = describeTrajectories(record, played);
  return { ...described, reward: null };
}
