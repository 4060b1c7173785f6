/** The functions of one group, which a script wrote, as the attempts of an agent. */
import type { Checkpoint, TrainedRoles } from '../../core/contract/contract.ts';
import { badConfig, showValue, TemperError } from '../../core/contract/failures.ts';
import type { PlannedLoopGroup } from './plan-loop.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Agent, RolloutContext, RolloutResult, Scenario } from '../../play/agent.ts';
import { ATTEMPT_HOOKS, attemptHooks } from '../../play/attempt-hooks.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import type { RolePlayers, RoleResult } from '../../play/roles/role-definition.ts';
import { defineAgent } from '../agent/define-agent.ts';
import { policy } from '../roles/roles.ts';
import { inRoleOrder, metricsOf, roleRewardsOf } from './attempt-trajectories.ts';
import type { LoopRun } from './loop-run.ts';
import { playAs } from './playing-attempt.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';
import { rewardsOfTurns } from './trajectory-record.ts';
import { Trajectory, type Origin } from './trajectory.ts';
import type { Answerer } from '../../play/dialects/answer-request.ts';
import { seatedAnswerer } from '../../play/roles/role-contexts.ts';
import { createFetch, type Fetch } from '../../play/transports/fetch.ts';

interface Script {
  readonly run: LoopRun;
  readonly group: TrajectoryGroup;
  readonly policy: Checkpoint;
  /** Called with every attempt that is over. */
  readonly onAttempt: (outcome: { trajectories: readonly Trajectory[] } | { error: unknown }) => void;
}

interface Playing {
  readonly plan: PlannedLoopGroup;
  /** Null without roles. */
  readonly players: RolePlayers | null;
  readonly recorderOf: (attempt: number) => Recorder;
}

interface LoopScenario extends Scenario {
  readonly attempt: number;
}

export class ScriptAgent {
  readonly trajectories = new Map<number, Trajectory[]>();
  readonly agent: Agent;
  readonly #printed = new Set<number>();
  readonly #script: Script;
  readonly #playing: Playing;

  constructor(script: Script, playing: Playing) {
    this.#script = script;
    this.#playing = playing;
    this.agent = this.#createAgent({ name: 'loop', scenarios: [] as LoopScenario[] }, playing.players?.trained);
  }

  #createAgent(base: { name: string; scenarios: LoopScenario[] }, trained: TrainedRoles | undefined): Agent {
    type Context = RolloutContext<LoopScenario>;
    if (trained === undefined)
      return defineAgent({ ...base, rollout: async (context: Context) => plainResult(await this.#playOne(context)) });
    const rollout = async (context: Context) => roleResult(await this.#playOne(context), Object.keys(trained));
    return defineAgent({ ...base, roles: toDefinitions(trained), rollout });
  }

  /** Attempts that ended by a rule rather than by an error of theirs. */
  printOtherFailures(attempts: readonly AttemptRecord[]): void {
    for (const { attempt, failure } of attempts)
      if (failure !== null && !this.#printed.has(attempt))
        this.#script.onAttempt({ error: new TemperError('AgentFailed', failure.message) });
  }

  async #playOne(context: RolloutContext<LoopScenario>): Promise<Trajectory[]> {
    const { scenario, once, random, signal } = context;
    const hooks = attemptHooks(context)!;
    const hidden = { [ATTEMPT_HOOKS]: { ...hooks, playProgram: null } };
    const { run, group, policy: checkpoint, onAttempt } = this.#script;
    const { plan, players, recorderOf } = this.#playing;
    const { attempt } = scenario;
    const fetchAs = createAttemptFetch(run.model, players, recorderOf(attempt));
    const place = { run: run.name, seed: plan.seed, attempt, checkpoint };
    const playing = { ...place, signal, fetchAs, openHosted: hooks.openHosted, others: new Map() };
    try {
      const played = await playAs(playing, async () =>
        group.attempts[attempt]!({ attempt, random, signal, once, ...hidden }),
      );
      const { split, step } = plan;
      const origin = { run: run.name, split, step, group: plan.group, attempt };
      const trajectories = takeTrajectories(played, origin, players?.trained);
      this.trajectories.set(attempt, trajectories);
      if (!signal.aborted) onAttempt({ trajectories });
      return trajectories;
    } catch (error) {
      // Errors after the end of an attempt say nothing new; the recorder knows how it ended.
      if (!signal.aborted) {
        this.#printed.add(attempt);
        onAttempt({ error });
      }
      throw error;
    }
  }
}

function toDefinitions(trained: TrainedRoles) {
  return Object.fromEntries(Object.entries(trained).map(([role, name]) => [role, policy(name)]));
}

function plainResult([trajectory]: readonly Trajectory[]): RolloutResult {
  return { reward: trajectory!.totalReward, metrics: trajectory!.metrics };
}

function roleResult(trajectories: readonly Trajectory[], roles: readonly string[]): RoleResult {
  const notPlayed = Object.fromEntries(roles.map((role) => [role, null]));
  return { roleRewards: { ...notPlayed, ...roleRewardsOf(trajectories) }, metrics: metricsOf(trajectories) };
}

/** Checked; errors name where they come from. */
function takeTrajectories(played: unknown, origin: Origin, roles: TrainedRoles | undefined): Trajectory[] {
  if (roles === undefined) return [takeOne(played, origin)];
  const names = Object.keys(roles);
  const remedy = `return { ${names.map((name) => `${name}: new Trajectory({ … })`).join(', ')} }`;
  if (typeof played !== 'object' || played === null || played instanceof Trajectory)
    throw new TemperError(
      'AgentFailed',
      `an attempt must return a trajectory for each role of the model, got ${played instanceof Trajectory ? 'one Trajectory' : showValue(played)}; ${remedy}`,
    );
  const given = new Map(Object.entries(played));
  const wrong = [...given.keys()].find((name) => !names.includes(name)) ?? names.find((name) => !given.has(name));
  if (wrong !== undefined)
    throw new TemperError(
      'AgentFailed',
      `an attempt must return a trajectory, or null, for each of the roles ${names.join(', ')}, got ${given.has(wrong) ? wrong : `none for ${wrong}`}; ${remedy}`,
    );
  const own = names.filter((role) => given.get(role) !== null);
  if (own.length === 0)
    throw new TemperError('AgentFailed', `an attempt must return a trajectory for a role, got null for all; ${remedy}`);
  return inRoleOrder(own.map((role) => takeOne(given.get(role), { ...origin, role })));
}

function takeOne(played: unknown, origin: Origin): Trajectory {
  if (!(played instanceof Trajectory))
    throw new TemperError(
      'AgentFailed',
      `an attempt must return a Trajectory, got ${showValue(played)}; return new Trajectory({ messagesAndChoices, reward })`,
    );
  played.origin = origin;
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

/** `players`: null without roles. A call of the model itself ends the attempt where it has roles. */
function createAttemptFetch(
  model: string,
  players: RolePlayers | null,
  recorder: Recorder,
): (role: string | null) => Fetch {
  if (players === null) {
    const fetch = createFetch(recorder);
    return () => fetch;
  }
  const roles = Object.entries(players.seated);
  const fetches = new Map(
    roles.map(([role, seated]) => [role, createFetch(seatedAnswerer(recorder, { role, policy: seated }))]),
  );
  const refusing = createFetch(
    refusePlain(
      recorder,
      roles.map(([role]) => role),
      model,
    ),
  );
  return (role) => (role === null ? refusing : (fetches.get(role) ?? refusing));
}

function refusePlain(recorder: Recorder, roles: readonly string[], model: string): Answerer {
  const error = badConfig(
    `an attempt of the model ${model} must call one of its roles (${roles.join(', ')}), got a call of model.openai(); call model.role('${roles[0]}').openai()`,
  );
  const refuse = () => recorder.refuse(error);
  return { call: async () => Promise.reject(await refuse()), refuse };
}
