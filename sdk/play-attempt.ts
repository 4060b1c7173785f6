/** Plays one attempt to its end: what comes back is data; what is no data is thrown. */
import type { RolloutConfig } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import { createRandom } from '../core/seeds.ts';
import type { Metrics } from '../core/statistics.ts';
import type { AttemptRecord } from '../store/trajectories.ts';
import { AttemptLog } from './attempt-log.ts';
import type { Agent, RolloutContext, Scenario } from './define-agent.ts';
import type { Journal } from './recorder/journal.ts';
import type { Recorder } from './recorder/recorder.ts';

export interface AttemptOptions {
  agent: Agent;
  scenario: Scenario;
  attempt: number;
  /** Of the agent's `random`. */
  seed: number;
  model: string;
  rollout: RolloutConfig;
  recorder: Recorder;
  journal: Journal;
  isFresh(): boolean;
}

type Outcome = { reward: number; metrics: Metrics } | { failure: string };

const MAX_MESSAGE = 2000;

/** Throws the recorder's mark (EngineFailed, PolicyMismatch, …) where the attempt is no data. */
export async function playAttempt(options: AttemptOptions): Promise<AttemptRecord> {
  const { recorder, attempt, journal } = options;
  const log = new AttemptLog();
  const outcome = await play(options, log);
  const { mark, failure } = recorder.ending;
  if (mark !== null) throw mark;
  const calls = recorder.takeCalls();
  const common = {
    attempt,
    logs: log.lines(),
    truncated: calls.some(({ finishReason }) => finishReason === 'length'),
    unclaimedAnswers: journal.unclaimed(attempt),
    calls,
  };
  const message = failure?.message ?? ('failure' in outcome ? outcome.failure : null);
  if (message !== null || 'failure' in outcome) return { ...failed(message ?? ''), ...common };
  return { status: 'ok', failure: null, ...outcome, ...common };
}

function failed(message: string): Pick<AttemptRecord, 'status' | 'failure' | 'reward' | 'metrics'> {
  return {
    status: 'failed',
    failure: { type: 'AgentFailed', message: message.slice(0, MAX_MESSAGE) },
    reward: null,
    metrics: {},
  };
}

/** The agent's promise, or the end of the attempt: an agent that goes on after that is not waited for. */
async function play(options: AttemptOptions, log: AttemptLog): Promise<Outcome> {
  const { ending } = options.recorder;
  const stopDeadline = startDeadline(options);
  const ended = new Promise<Outcome>((resolve) => {
    const end = (): void => resolve({ failure: String((ending.signal.reason as Error).message) });
    ending.signal.addEventListener('abort', end, { once: true });
    if (ending.isOver) end();
  });
  try {
    return await Promise.race([runAgent(options, log), ended]);
  } finally {
    stopDeadline();
    options.recorder.close();
  }
}

async function runAgent(options: AttemptOptions, log: AttemptLog): Promise<Outcome> {
  const metrics: Metrics = {};
  try {
    const result: unknown = await options.agent.rollout(createContext(options, log, metrics));
    return checkResult(result, metrics);
  } catch (error) {
    return { failure: describe(error) };
  }
}

function createContext(options: AttemptOptions, log: AttemptLog, metrics: Metrics): RolloutContext {
  const { recorder, scenario, model, rollout, seed } = options;
  return {
    scenario: structuredClone(scenario),
    openai: recorder.openai,
    model,
    temperature: rollout.temperature,
    random: createRandom(seed),
    signal: recorder.ending.signal,
    once: (name, fn) => recorder.once(name, fn),
    metric: (name, value) => void (metrics[name] = value),
    log: (...values) => log.add(values),
  };
}

function checkResult(result: unknown, noted: Metrics): Outcome {
  const { reward, metrics = {} } = (typeof result === 'number' ? { reward: result } : (result ?? {})) as Partial<{
    reward: unknown;
    metrics: unknown;
  }>;
  if (typeof reward !== 'number' || !Number.isFinite(reward)) {
    return {
      failure: `rollout must return a finite reward, got ${shown(reward)}; return a number or { reward, metrics }`,
    };
  }
  const all = { ...noted, ...(metrics as Record<string, unknown>) };
  const wrong = Object.entries(all).find(([, value]) => typeof value !== 'boolean' && !Number.isFinite(value));
  if (wrong === undefined) return { reward, metrics: all as Metrics };
  return { failure: `metrics must be finite numbers or booleans, got ${wrong[0]}: ${shown(wrong[1])}; leave it out` };
}

/**
 * The agent's time; what it waited for an engine that did not answer is not counted. A process that stood still was
 * not playing: its attempt belongs to whoever has it by now.
 */
function startDeadline({ recorder, rollout, isFresh }: AttemptOptions): () => void {
  const { attemptTimeoutMs } = rollout;
  const start = Date.now();
  let timer: NodeJS.Timeout;
  const check = (): void => {
    const leftMs = start + attemptTimeoutMs + recorder.outage.elapsedMs - Date.now();
    if (!isFresh())
      recorder.ending.markAs(new TemperError('StaleAttempt', 'this process stood still; the attempt is played again'));
    else if (leftMs <= 0)
      recorder.ending.failAs(`an attempt may take attemptTimeoutMs ${attemptTimeoutMs} ms, it took longer`);
    else timer = setTimeout(check, leftMs);
  };
  timer = setTimeout(check, attemptTimeoutMs);
  return () => clearTimeout(timer);
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `threw ${shown(error)}`;
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value)).slice(0, 100);
}
