/** An agent played without any engine: a test writes what the model says, and looks at what the agent made of it. */
import { DEFAULT_ROLLOUT } from '../../core/run-defaults.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import { outcomeOf, playSingle, type AttemptOutcome } from '../../play/single-attempt.ts';
import { checkOptions } from '../options/check-options.ts';
import { ScriptedEngine, type ScriptedAnswers } from './scripted-engine.ts';
import { ScriptedHosted } from './scripted-hosted.ts';

export interface PlayAgentOptions<S extends Scenario> {
  scenario: S;
  /** The model's answers: one for each call, or a function of the request. */
  answers: ScriptedAnswers;
  /** Answers of hosted models, by the agent's name for them: `{ 'openai/gpt-5-mini': ['Yes.'] }`. */
  hosted?: Readonly<Record<string, ScriptedAnswers>>;
  /** Seed of the agent's `random`; 1. */
  seed?: number;
  /** The run's sampling temperature; 1. */
  temperature?: number;
  /** `train` refuses what training refuses, `eval` passes it on; `train`. */
  rules?: 'train' | 'eval';
}

export interface PlayedAgent extends AttemptOutcome {
  /** An answer was cut: the attempt would not be trained. */
  readonly truncated: boolean;
}

/** Rejects where the script has no answer, and where a request is one that ends a run. */
export async function playAgent<S extends Scenario>(
  agent: Agent<S>,
  options: PlayAgentOptions<S>,
): Promise<PlayedAgent> {
  const {
    scenario,
    answers,
    hosted = {},
    seed = 1,
    temperature = 1,
    rules = 'train',
  } = checkOptions('playAgent', options);
  const engine = new ScriptedEngine(answers);
  const models = new ScriptedHosted(hosted);
  const playing = playSingle({
    agent: agent,
    engine,
    planned: { scenario, scenarioIndex: 0, attempt: 0 },
    policy: { model: 'scripted', adapterSha256: null },
    mode: rules,
    rollout: { ...DEFAULT_ROLLOUT, temperature },
    place: { seed, branch: 0, step: 0 },
    signal: new AbortController().signal,
    onRecorder: (recorder) => {
      engine.attach(recorder);
      models.attach(recorder);
    },
    connectHosted: (model) => models.connect(model),
  });
  const played = await playing.catch((error: unknown) => {
    throw (engine.problem ?? models.problem ?? { error }).error;
  });
  const problem = engine.problem ?? models.problem;
  if (problem !== null) throw problem.error;
  return { ...outcomeOf(played), truncated: played.record.truncated };
}
