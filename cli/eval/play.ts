/** Plays scenarios once each, outside of any run: the same recorder and the same rules as in training, nothing is kept. */
import pLimit from 'p-limit';
import type { RolloutConfig } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { callSeed, deriveSeed } from '../../core/seeds.ts';
import type { Agent, Scenario } from '../../sdk/define-agent.ts';
import { playAttempt } from '../../sdk/play-attempt.ts';
import { connectEngine } from '../../sdk/recorder/engine-connection.ts';
import type { EngineAddress } from '../../sdk/recorder/engine-connection.ts';
import { Journal } from '../../sdk/recorder/journal.ts';
import { Recorder } from '../../sdk/recorder/recorder.ts';
import type { RequestMode } from '../../sdk/recorder/request.ts';
import type { AttemptRecord } from '../../store/trajectories.ts';

export interface PlayOptions {
  readonly agent: Agent;
  readonly scenarios: readonly Scenario[];
  readonly engine: EngineAddress;
  readonly model: string;
  /** Null for a base model and for models elsewhere. */
  readonly adapterSha256: string | null;
  readonly mode: RequestMode;
  readonly rollout: RolloutConfig;
  readonly seed: number;
  readonly concurrency: number;
  readonly signal: AbortSignal;
  onPlayed(done: number): void;
}

export async function playScenarios(options: PlayOptions): Promise<AttemptRecord[]> {
  const engine = connectEngine(options.engine);
  const limit = pLimit(options.concurrency);
  let done = 0;
  try {
    const games = options.scenarios.map((scenario, index) =>
      limit(async () => {
        options.signal.throwIfAborted();
        const record = await playOne(options, engine, scenario, index);
        options.onPlayed(++done);
        return record;
      }),
    );
    return await Promise.all(games);
  } finally {
    limit.clearQueue();
    await engine.close();
  }
}

async function playOne(
  options: PlayOptions,
  engine: ReturnType<typeof connectEngine>,
  scenario: Scenario,
  index: number,
): Promise<AttemptRecord> {
  const { agent, model, adapterSha256, mode, rollout, seed } = options;
  const journal = new Journal({ existing: [], append: () => undefined, close: () => undefined });
  const place = { seed, branch: 0, step: 0, scenario: index, attempt: 0 };
  const recorder = new Recorder({
    engine,
    journal,
    attempt: 0,
    attemptKey: `eval/${scenario.id}`,
    policy: { model, adapterSha256 },
    mode,
    rollout,
    seedOf: (key, occurrence) => callSeed({ ...place, key, occurrence }),
    isFresh: () => true,
  });
  const abort = () => recorder.ending.markAs(new TemperError('EngineFailed', 'interrupted'));
  options.signal.addEventListener('abort', abort, { once: true });
  try {
    const agentSeed = deriveSeed([seed, 'eval', index]);
    return await playAttempt({
      agent,
      scenario,
      attempt: 0,
      seed: agentSeed,
      model,
      rollout,
      recorder,
      journal,
      isFresh: () => true,
    });
  } finally {
    options.signal.removeEventListener('abort', abort);
  }
}
