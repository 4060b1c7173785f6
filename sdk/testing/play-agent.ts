/** An agent played without any engine: a test writes what the model says, and looks at what the agent made of it. */
import { DEFAULT_ROLLOUT } from '../../core/run-defaults.ts';
import type { Metrics } from '../../core/statistics.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import { playSingle } from '../../play/single-attempt.ts';
import type { CallRecord } from '../../store/records/trajectories.ts';
import { checkOptions } from '../options/check-options.ts';
import { ScriptedEngine, type ScriptedAnswers } from './scripted-engine.ts';

export interface PlayAgentOptions<S extends Scenario> {
  scenario: S;
  /** What the model says: one answer for each call, or a function of the request. */
  answers: ScriptedAnswers;
  /** Of the agent's `random`; 1. */
  seed?: number;
  /** The run's sampling temperature; 1. */
  temperature?: number;
  /** `train` refuses what training refuses, `eval` passes it on; `train`. */
  rules?: 'train' | 'eval';
}

export interface PlayedAgent {
  /** Null where the attempt failed, or where a judge alone gives rewards. */
  readonly reward: number | null;
  readonly metrics: Readonly<Metrics>;
  readonly logs: readonly string[];
  /** As it would stand in a trajectory: what the agent threw, or which rule it broke; null where it returned. */
  readonly failure: string | null;
  /** What the agent threw, with its stack. */
  readonly error: unknown;
  /** Requests and answers, in the order in which the agent asked. */
  readonly calls: readonly CallRecord[];
  /** An answer was cut: the attempt would not be trained. */
  readonly truncated: boolean;
}

/** Rejects where the script has no answer, and where a request is one that ends a run. */
export async function playAgent<S extends Scenario>(
  agent: Agent<S>,
  options: PlayAgentOptions<S>,
): Promise<PlayedAgent> {
  const { scenario, answers, seed = 1, temperature = 1, rules = 'train' } = checkOptions('playAgent', options);
  const engine = new ScriptedEngine(answers);
  const playing = playSingle({
    agent: agent,
    engine,
    planned: { scenario, scenarioIndex: 0, attempt: 0 },
    policy: { model: 'scripted', adapterSha256: null },
    mode: rules,
    rollout: { ...DEFAULT_ROLLOUT, temperature },
    place: { seed, branch: 0, step: 0 },
    signal: new AbortController().signal,
    onRecorder: (recorder) => engine.attach(recorder),
  });
  const { record, asked, thrown } = await playing.catch((error: unknown) => {
    throw engine.problem === null ? error : engine.problem.error;
  });
  if (engine.problem !== null) throw engine.problem.error;
  return {
    reward: record.reward,
    metrics: record.metrics,
    logs: record.logs,
    failure: record.failure?.message ?? null,
    error: thrown?.error,
    calls: asked,
    truncated: record.truncated,
  };
}
