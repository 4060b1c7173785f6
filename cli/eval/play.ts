/** Plays scenarios once each, outside of any run: the same recorder and the same rules as in training, nothing is kept. */
import { Episodes, forgetfulSegments } from '../../sdk/play-episodes.ts';
import { connectEngine } from '../../sdk/recorder/engine-connection.ts';
import type { EngineAddress } from '../../sdk/recorder/engine-connection.ts';
import type { RequestMode } from '../../sdk/recorder/request.ts';
import type { AttemptRecord } from '../../store/trajectories.ts';
import type { PlannedEval } from './plan-eval.ts';

export interface PlayOptions {
  readonly plan: PlannedEval;
  readonly engine: EngineAddress;
  readonly mode: RequestMode;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, of: number, waitingFor: string | null) => void;
}

const TELL_EVERY_MS = 2000;

export async function playScenarios({ plan, engine, mode, signal, onProgress }: PlayOptions): Promise<AttemptRecord[]> {
  const connection = connectEngine(engine);
  const { agentFile, scenarios, firstScenario, concurrency, model, adapterSha256, rollout, place } = plan;
  const episodes = new Episodes({
    agent: agentFile.agent,
    // As a run numbers them: what plays `run@step` draws the same answers as the run's own evaluation did.
    episodes: scenarios.map((scenario, attempt) => ({ attempt, scenarioIndex: firstScenario + attempt, scenario })),
    concurrency,
    engine: connection,
    segments: forgetfulSegments(),
    policy: { model, adapterSha256 },
    mode,
    rollout,
    place,
    attemptKey: (attempt) => `eval/${model}/${attempt}`,
    signal,
    isFresh: () => true,
  });
  const timer = setInterval(() => {
    const { done, of, waiting } = episodes.progress();
    onProgress(done, of, waiting?.reason ?? null);
  }, TELL_EVERY_MS);
  try {
    return await episodes.play();
  } finally {
    clearInterval(timer);
    await connection.close();
  }
}
