/** Plays one attempt to its end. Returns the recorded attempt; throws when it must be discarded. */
import { showValue, TemperError } from '../core/contract/failures.ts';
import { createRandom } from '../core/numbers/seeds.ts';
import { isReward, REWARD_RULE } from '../core/rules/given-values.ts';
import type { Metrics } from '../core/numbers/statistics.ts';
import { wasCut, type AttemptRecord, type CallRecord } from '../store/records/groups/trajectories.ts';
import { AttemptLog } from './attempt-log.ts';
import { ATTEMPT_HOOKS, type AttemptHooks } from './attempt-hooks.ts';
import { checkTurnsCount, isGraded, mayLackReward, readResult, type PlayedOutcome } from './attempt-result.ts';
import type { Agent, RolloutContext, Scenario } from './agent.ts';
import { agentProgram, type PlayProgram, type ProgramResult, type ProgramAttempt } from './programs/program.ts';
import { slotsOf } from './programs/program-slots.ts';
import type { PlayingRun, OpenWorkflowAttempt } from './model-activities/workflow-attempt.ts';
import type { ConnectHosted } from './connections/connect-hosted.ts';
import { createHosted } from './hosted/hosted.ts';
import { HostedCalls } from './hosted/hosted-calls.ts';
import type { Journal } from './recorder/journal.ts';
import type { Recorder } from './recorder/recorder.ts';
import { createRoleContexts } from './roles/role-contexts.ts';
import type { RolePlayers } from './roles/role-definition.ts';
import { captureAs } from './transports/ambient.ts';
import { createModelClient } from './transports/model-client.ts';

/** The same for all attempts that are played together. */
export interface SharedOptions {
  agent: Agent;
  /** False where this process may have lost its work to another one. */
  isFresh: () => boolean;
  /** Absent outside of a run: nobody plays discarded attempts again. */
  run?: PlayingRun;
  /** Told of the error that ended the agent: a record keeps the message alone, whose bytes are under a hash. */
  onThrow?: (error: unknown) => void;
  /** Default: with the keys of this process's environment. */
  connectHosted?: ConnectHosted;
}

export interface AttemptOptions extends SharedOptions {
  scenario: Scenario;
  attempt: number;
  /** Seed of the agent's `random`. */
  seed: number;
  /** Players of the agent's roles; absent without roles. */
  players: RolePlayers | undefined;
  recorder: Recorder;
  journal: Journal;
  /** Values of the agent's resources, by name. */
  values: Readonly<Record<string, unknown>>;
}

const MAX_FAILURE_MESSAGE = 2000;
const RECHECK_MS = 50;

/** Throws the abort reason (EngineFailed, PolicyMismatch, …) of an attempt that must be discarded. */
export async function playAttempt(options: AttemptOptions): Promise<AttemptRecord> {
  const { recorder, attempt, journal } = options;
  const log = new AttemptLog();
  const hosted = new HostedCalls(recorder, journal, attempt);
  const outcome = await play(options, log, hosted);
  if (recorder.ending.abortReason !== null) throw recorder.ending.abortReason;
  const calls = recorder.takeCalls();
  const counted = { ...recorder.toolCounts.metrics(), ...hosted.metrics(), ...countRoleCalls(options) };
  const hostedCalls = hosted.records();
  return {
    attempt,
    ...describeOutcome(outcome, counted),
    logs: log.lines(),
    truncated: recorder.hasOutgrown || calls.some((call) => wasCut(call) && isOwn(call, options.players)),
    unclaimedAnswers: journal.unclaimed(attempt),
    calls,
    ...(hostedCalls === null ? {} : { hostedCalls }),
  };
}

type Described = Pick<AttemptRecord, 'status' | 'failure' | 'reward' | 'roleRewards' | 'metrics'>;

/** Whether a call is one of the policies that the attempt is about, and not of an opponent's. */
function isOwn({ role }: CallRecord, players: RolePlayers | undefined): boolean {
  return players === undefined || (role !== undefined && Object.hasOwn(players.trained, role));
}

/** Calls of each trained role: one that never calls learns nothing. */
function countRoleCalls({ recorder, players }: AttemptOptions): Metrics {
  const counts = Object.entries(recorder.countCalls(Object.keys(players?.trained ?? {})));
  return Object.fromEntries(counts.map(([role, calls]) => [`calls/${role}`, calls]));
}

/** Metrics that the agent reports override counted ones. */
function describeOutcome(outcome: PlayedOutcome, counted: Metrics): Described {
  if (!('failure' in outcome)) {
    return { status: 'ok', failure: null, ...outcome, metrics: { ...counted, ...outcome.metrics } };
  }
  const message = outcome.failure.slice(0, MAX_FAILURE_MESSAGE);
  return { status: 'failed', failure: { type: 'AgentFailed', message }, reward: null, metrics: {} };
}

/** The agent's promise, or the end of the attempt: an agent that goes on after that is not waited for. */
async function play(options: AttemptOptions, log: AttemptLog, hosted: HostedCalls): Promise<PlayedOutcome> {
  const { recorder } = options;
  const { ending } = recorder;
  const stopDeadline = startDeadline(options);
  const ended = new Promise<null>((resolve) => {
    ending.signal.addEventListener('abort', () => resolve(null), { once: true });
    if (ending.isOver) resolve(null);
  });
  const programs = new Set<Promise<unknown>>();
  const ends: (() => Promise<void>)[] = [];
  const outcome = await Promise.race([runAgent(options, { log, hosted, programs, ends }), ended]);
  stopDeadline();
  await recorder.close();
  await Promise.allSettled([...programs, ...ends.map((end) => end())]);
  // Whatever it returned: an attempt that broke a rule has failed.
  if (ending.failure !== null) return { failure: ending.failure.message };
  return outcome ?? { failure: 'the attempt was ended' };
}

interface Playing {
  log: AttemptLog;
  hosted: HostedCalls;
  /** Those that it plays, each until nothing of it is left. */
  programs: Set<Promise<unknown>>;
  /** Called when it is over. */
  ends: (() => Promise<void>)[];
}

async function runAgent(options: AttemptOptions, playing: Playing): Promise<PlayedOutcome> {
  const metrics = Object.create(null) as Metrics;
  try {
    const context = { ...createContext(options, playing, metrics), [ATTEMPT_HOOKS]: createHooks(options, playing) };
    const result: unknown = await captured(options.agent, context, () => options.agent.rollout(context));
    const outcome = readResult(result, metrics, options.agent, options.players);
    if ('failure' in outcome || outcome.reward === null) return outcome;
    const reward = options.recorder.turns.addTo(outcome.reward);
    return isReward(reward)
      ? { ...outcome, reward }
      : { failure: `the sum of an attempt's reward and its turn rewards must be ${REWARD_RULE}, got ${reward}` };
  } catch (error) {
    options.onThrow?.(error);
    return { failure: describe(error) };
  }
}

/** With clients of its own, where the agent has any. */
function captured<T>({ captureModel }: Agent, { model, baseURL, fetch }: RolloutContext, rollout: () => T): T {
  return captureModel === undefined ? rollout() : captureAs({ asked: captureModel, model, baseURL, fetch }, rollout);
}

function createContext(options: AttemptOptions, playing: Playing, metrics: Metrics): RolloutContext {
  const { log, hosted } = playing;
  const { recorder, scenario, seed, values } = options;
  const client = createModelClient(recorder, { model: recorder.model, baseURL: `${recorder.engineUrl}/v1` });
  return {
    scenario: structuredClone(scenario),
    resources: values,
    ...client,
    gateway: createGateway(recorder, log),
    hosted: createHosted({ recorder, calls: hosted, connect: options.connectHosted }),
    roles: createRoles(options, hosted, client.baseURL),
    temperature: recorder.rollout.temperature,
    random: createRandom(seed),
    signal: recorder.ending.signal,
    once: (name, fn) => recorder.once(name, fn),
    rewardTurn: (turn, reward) => {
      checkTurnsCount(options.agent);
      recorder.turns.reward(turn, reward);
    },
    metric: (name, value) => void (metrics[name] = value),
    log: (...shown) => log.add(shown),
  };
}

/** Servers are loaded where another process calls the model. */
function createGateway(recorder: Recorder, log: AttemptLog): RolloutContext['gateway'] {
  return async ({ rewrite = null } = {}) => {
    const { gateway } = await import('./transports/gateway.ts');
    const { createRequestHandler } = await import('./transports/gateway-calls.ts');
    const write = (line: string): void => log.add([line]);
    const handler = createRequestHandler({ recorder, log: write, rewrite, takesResult: false });
    const endpoint = await gateway.open(handler);
    const close = (): void => endpoint.close();
    recorder.ending.signal.addEventListener('abort', close, { once: true });
    if (recorder.ending.isOver) close();
    return { baseURL: `${endpoint.origin}/v1`, apiKey: endpoint.key };
  };
}

/** Loaded where a workflow plays: other attempts need no listener. */
function createOpener(options: AttemptOptions, { log, ends }: Playing): OpenWorkflowAttempt {
  const { run = null, attempt, recorder, journal, isFresh } = options;
  const write = (line: string): void => log.add([line]);
  return async () => {
    const { openWorkflowAttempt } = await import('./model-activities/open-workflow-attempt.ts');
    const own = { run, attempt, recorder, journal, isFresh, log: write };
    const opened = await openWorkflowAttempt(own);
    ends.push(async () => opened.endpoint.close());
    return opened;
  };
}

function createHooks(options: AttemptOptions, playing: Playing): AttemptHooks {
  const { agent, attempt, journal, recorder } = options;
  const own = {
    folder: agent.folder ?? process.cwd(),
    countDeath: (place: string) => journal.count(attempt, `death ${place}`),
  };
  return {
    ...own,
    abort: (error) => recorder.ending.abort(error),
    onEnd: (end) => void playing.ends.push(end),
    openHosted: (model) => playing.hosted.open(model),
    playProgram: createPlayer(options, playing, own),
    openWorkflow: createOpener(options, playing),
  };
}

function createRoles(
  { agent, recorder, players, connectHosted: connect }: AttemptOptions,
  calls: HostedCalls,
  baseURL: string,
): RolloutContext['roles'] {
  if (players === undefined) return {};
  return createRoleContexts(agent.roles ?? {}, players, { recorder, calls, connect, baseURL });
}

function createPlayer(
  { agent, recorder, seed, values }: AttemptOptions,
  { log, programs }: Playing,
  own: Pick<ProgramAttempt, 'folder' | 'countDeath'>,
): PlayProgram {
  const { model, rollout } = recorder;
  const write = (line: string): void => log.add([line]);
  return (program, scenario) => {
    const attempt = {
      ...own,
      program,
      scenario,
      resources: agent.resources === undefined ? null : values,
      recorder,
      model,
      temperature: rollout.temperature,
      seed,
      mayLackReward: mayLackReward(agent),
      isGraded: isGraded(agent),
      log: write,
    };
    // A program that is the agent plays in the attempt's own slot.
    const isAgent = agentProgram(agent) === program;
    const playing = isAgent ? playNow(attempt) : playWithSlot(attempt);
    programs.add(playing);
    return playing;
  };
}

/** Servers and processes are loaded where programs are played: an agent's own copy of this module needs none of them. */
async function playNow(attempt: ProgramAttempt): Promise<ProgramResult> {
  const { playProgram } = await import('./programs/play-program.ts');
  return playProgram(attempt);
}

async function playWithSlot(attempt: ProgramAttempt): Promise<ProgramResult> {
  const giveBack = await slotsOf(attempt.program).take(attempt.recorder.ending.signal);
  return playNow(attempt).finally(giveBack);
}

/**
 * The agent's time, where it does not ask: a call past it is refused by the recorder. A process that stood still was
 * not playing: its attempt belongs to whoever has it by now.
 */
function startDeadline({ recorder, isFresh }: AttemptOptions): () => void {
  const { ending } = recorder;
  let timer: NodeJS.Timeout;
  const check = (): void => {
    if (isFresh()) recorder.time.endIfLate();
    else ending.abort(stale());
    if (!ending.isOver) timer = setTimeout(check, Math.max(recorder.time.leftMs, RECHECK_MS));
  };
  timer = setTimeout(check, recorder.time.leftMs);
  return () => clearTimeout(timer);
}

function stale(): TemperError {
  return new TemperError('StaleAttempt', 'this process was suspended; the attempt is retried');
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `threw ${showValue(error)}`;
}
