/** Hosted models whose answers a test has written down, by their names: no key is needed, and nothing leaves the process. */
import { badConfig } from '../../core/failures.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import type { NamedModel } from '../../play/connections/providers.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import { ScriptedEngine, type ScriptedAnswers } from './scripted-engine.ts';

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
