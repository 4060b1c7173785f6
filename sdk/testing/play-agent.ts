/** An agent played without any engine: a test writes what the model says, and looks at what the agent made of it. */
import { DEFAULT_ROLLOUT } from '../../core/rules/run-defaults.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import { outcomeOf, playSingle, type AttemptOutcome } from '../../play/single-attempt.ts';
import { given, optional, takes } from '../options/options.ts';
import { ScriptedEngine, type ScriptedAnswers } from './scripted-engine.ts';
import { badConfig } from '../../core/contract/failures.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import type { NamedModel } from '../../play/connections/providers.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';

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

const checkOptions = takes<PlayAgentOptions<Scenario>>('playAgent', {
  ...given('scenario', 'answers'),
  ...optional('hosted', 'seed', 'temperature', 'rules'),
});

export interface PlayedAgent extends AttemptOutcome {
  /** An answer was cut: the attempt would not be trained. */
  readonly truncated: boolean;
}

/** Rejects where the script has no answer, and where a request is one that ends a run. */
export async function playAgent<S extends Scenario>(
  agent: Agent<S>,
  options: PlayAgentOptions<S>,
): Promise<PlayedAgent> {
  const { scenario, answers, hosted = {}, seed = 1, temperature = 1, rules = 'train' } = checkOptions(options);
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

/** Hosted models whose answers a test has written down, by their names: no key is needed, and nothing leaves the process. */
export class ScriptedHosted {
  readonly #answers: Readonly<Record<string, ScriptedAnswers>>;
  readonly #engines = new Map<string, ScriptedEngine>();
  #missing: { readonly error: unknown } | null = null;
  #recorder: Recorder | null = null;

  constructor(answers: Readonly<Record<string, ScriptedAnswers>>) {
    this.#answers = answers;
  }

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  /** See `ScriptedEngine.problem`. */
  get problem(): { readonly error: unknown } | null {
    return this.#missing ?? [...this.#engines.values()].find(({ problem }) => problem !== null)?.problem ?? null;
  }

  connect({ name }: NamedModel): EngineConnection {
    const engine = this.#engines.get(name) ?? this.#create(name);
    this.#engines.set(name, engine);
    return engine;
  }

  #create(name: string): ScriptedEngine {
    const answers = this.#answers[name];
    if (answers === undefined) {
      const rule = `the agent calls the hosted model ${name}, but hosted has no answers of it`;
      const error = badConfig(`${rule}; add hosted: { '${name}': ['…'] }`);
      this.#missing ??= { error };
      throw error;
    }
    const engine = new ScriptedEngine(answers, `hosted['${name}']`);
    if (this.#recorder !== null) engine.attach(this.#recorder);
    return engine;
  }
}
