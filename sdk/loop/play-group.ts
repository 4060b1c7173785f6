/** One group, played by the script's own functions, recorded and journaled as an agent's attempts are, and published. */
import { hostname } from 'node:os';

import type { Checkpoint } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { planLoopGroup, type LoopGroup, type PlannedLoopGroup } from '../../core/plan-loop.ts';
import { policyName } from '../../core/policy-name.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { groupJournalPrefix, groupTimesKey, validationJournalPrefix, type GroupPlace } from '../../store/layout.ts';
import { encodeRollouts, type AttemptRecord } from '../../store/records/trajectories.ts';
import type { Agent, RolloutContext, Scenario } from '../../play/agent.ts';
import { ATTEMPT_HOOKS, attemptHooks } from '../../play/attempt-hooks.ts';
import { defineAgent } from '../agent/define-agent.ts';
import { Attempts } from '../../play/play-attempts.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import { createFetch } from '../../play/transports/fetch.ts';
import { withTurns, type PlayedTurns } from '../../play/recorder/turns.ts';
import { gatheredKey, readGathered, type StoredGroup } from './gathered-group.ts';
import type { LoopRun } from './loop-run.ts';
import { playAs } from './playing-attempt.ts';
import { TrajectoryGroup } from './trajectory-group.ts';
import { describeTrajectory, keepOrder, rewardsOfTurns } from './trajectory-record.ts';
import { Trajectory } from './trajectory.ts';

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
  /** Told of every attempt that is over. */
  onAttempt: (outcome: { trajectory: Trajectory } | { error: unknown }) => void;
}

interface LoopScenario extends Scenario {
  readonly attempt: number;
}

interface Played {
  attempts: AttemptRecord[];
  orders: Record<number, number[]>;
  /** Turn numbers by attempt. */
  turns: ReadonlyMap<number, PlayedTurns['numbers']>;
  /** Trajectories by attempt; absent if it failed. */
  trajectories: ReadonlyMap<number, Trajectory>;
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
  const startedAt = Date.now();
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
    const seconds = (Date.now() - startedAt) / 1000;
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
  const players = new Players(work, plan, (attempt) => recorders.get(attempt)!);
  const playing = new Attempts({
    agent: players.agent,
    planned: group.attempts.map((_, attempt) => ({
      attempt,
      scenarioIndex: place.group,
      scenario: { id: plan.scenarioId, attempt } as Scenario,
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
  players.tellOthers(attempts);
  // Too many failures: the next script, mended, plays this group again.
  signal.throwIfAborted();
  const turns = new Map(attempts.map(({ attempt }) => [attempt, playing.turnsOf(attempt)?.numbers ?? new Map()]));
  return { attempts, orders: playing.callOrders(), turns, trajectories: players.trajectories };
}

/** The script's functions as one agent's attempts. */
class Players {
  readonly trajectories = new Map<number, Trajectory>();
  readonly agent: Agent;
  readonly #told = new Set<number>();
  readonly #work: GroupWork;
  readonly #plan: PlannedLoopGroup;
  readonly #recorderOf: (attempt: number) => Recorder;

  constructor(work: GroupWork, plan: PlannedLoopGroup, recorderOf: (attempt: number) => Recorder) {
    this.#work = work;
    this.#plan = plan;
    this.#recorderOf = recorderOf;
    const rollout = (context: RolloutContext<LoopScenario>) => this.#playOne(context);
    this.agent = defineAgent<LoopScenario>({ name: 'loop', scenarios: [], rollout });
  }

  /** Attempts that ended by a rule rather than by an error of theirs. */
  tellOthers(attempts: readonly AttemptRecord[]): void {
    for (const { attempt, failure } of attempts)
      if (failure !== null && !this.#told.has(attempt))
        this.#work.onAttempt({ error: new TemperError('AgentFailed', failure.message) });
  }

  async #playOne(context: RolloutContext<LoopScenario>) {
    const { scenario, once, random, signal } = context;
    const hidden = { [ATTEMPT_HOOKS]: attemptHooks(context) };
    const { run, group, planned, onAttempt } = this.#work;
    const policy = policyName(this.#work.policy);
    const { attempt } = scenario;
    const fetch = createFetch(this.#recorderOf(attempt));
    const playing = { run: run.name, policy, seed: this.#plan.seed, attempt, signal, once, fetch, asked: new Map() };
    try {
      const played = await playAs(playing, async () =>
        group.attempts[attempt]!({ attempt, random, signal, once, ...hidden }),
      );
      const trajectory = checkTrajectory(played);
      const { split, step } = planned;
      trajectory.origin = { run: run.name, split, step, group: planned.group, attempt };
      this.trajectories.set(attempt, trajectory);
      if (!signal.aborted) onAttempt({ trajectory });
      return { reward: trajectory.totalReward, metrics: trajectory.metrics };
    } catch (error) {
      // Errors after the end of an attempt say nothing new; the recorder knows how it ended.
      if (!signal.aborted) {
        this.#told.add(attempt);
        onAttempt({ error });
      }
      throw error;
    }
  }
}

function checkTrajectory(played: unknown): Trajectory {
  if (!(played instanceof Trajectory))
    throw new TemperError(
      'AgentFailed',
      `an attempt must return a Trajectory, got ${JSON.stringify(played) ?? String(played)}; return new Trajectory({ messagesAndChoices, reward })`,
    );
  const { reward, metrics } = played;
  const wrong = Object.entries({ reward, ...metrics }).find(
    ([, value]) => typeof value !== 'boolean' && !Number.isFinite(value),
  );
  rewardsOfTurns(played);
  if (wrong === undefined) return played;
  throw new TemperError(
    'AgentFailed',
    `reward and metrics of a trajectory must be finite, got ${wrong[0]} ${String(wrong[1])}; set it, or remove it`,
  );
}

/** Applies the script's `afterEach` to a played group: other rewards, fewer attempts, or null. */
async function applyAfterEach(
  { group }: GroupWork,
  { attempts, trajectories }: Played,
  afterEach: AfterEach | null,
  { metadata }: PlannedLoopGroup,
): Promise<ReadonlyMap<number, Trajectory> | null> {
  const kept = attempts.flatMap(({ attempt, status }) => {
    const trajectory = trajectories.get(attempt);
    return status === 'ok' && trajectory !== undefined ? [trajectory] : [];
  });
  if (afterEach === null) return new Map(kept.map((trajectory) => [trajectory.origin!.attempt, trajectory]));
  const exceptions = attempts.flatMap(({ attempt, failure }) => (failure === null ? [] : [{ attempt, ...failure }]));
  const given = new TrajectoryGroup(kept, { metadata: { ...group.metadata, ...metadata } });
  given.exceptions = exceptions;
  const judged = await afterEach(given);
  if (!judged) return null;
  for (const trajectory of judged) checkJudged(trajectory);
  return new Map(judged.trajectories.map((trajectory) => [trajectory.origin!.attempt, trajectory]));
}

function checkJudged(trajectory: Trajectory): void {
  const { origin, reward } = trajectory;
  rewardsOfTurns(trajectory);
  if (origin === null)
    throw new TemperError(
      'BadConfig',
      'afterEach must return trajectories of the group that it was given; copy one with trajectory.copy({ reward })',
    );
  if (!Number.isFinite(reward))
    throw new TemperError('BadConfig', `afterEach must leave finite rewards, got ${reward}; remove the trajectory`);
}

/** An attempt that the script took out is trained no more, and says only which turn is which. */
function turnsOf(
  attempt: number,
  { turns, trajectories }: Played,
  judged: ReadonlyMap<number, Trajectory> | null,
): PlayedTurns | null {
  const numbers = turns.get(attempt);
  const trajectory = judged?.get(attempt);
  if (numbers === undefined || !trajectories.has(attempt)) return null;
  // A judge of a script's trajectories reads their messages, which the script put in order.
  return { numbers, rewards: trajectory === undefined ? new Map() : rewardsOfTurns(trajectory), tellsOrder: false };
}

/** An attempt that was taken out stays in the store, without a reward. */
function complete(
  record: AttemptRecord,
  { trajectories }: Played,
  judged: ReadonlyMap<number, Trajectory> | null,
): AttemptRecord {
  const played = trajectories.get(record.attempt);
  if (record.status !== 'ok' || played === undefined) return record;
  const kept = judged?.get(record.attempt);
  const described = describeTrajectory(record, kept ?? played);
  return kept === undefined ? { ...described, reward: null } : described;
}
