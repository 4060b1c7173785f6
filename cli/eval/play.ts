/** Plays each scenario once, outside of any run: recorder and rules are those of training, and nothing is stored. */
import { Attempts, describeWaiting, inMemorySegments } from '../../play/play-attempts.ts';
import type { AgentResources } from '../../play/resources/agent-resources.ts';
import { connectEngine, type EngineAddress } from '../../play/connections/engine-connection.ts';
import { hostedAddress } from '../../play/connections/providers.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';
import { rolePlayersOf } from './role-players.ts';
import { createRewrite, type Player } from './players.ts';
import { Ledger, type AttemptCost } from './ledger.ts';
import type { EvalPlan } from './plan-eval.ts';

export interface PlayOptions {
  readonly plan: EvalPlan;
  readonly player: Player;
  /** Engine of the local stack; null for a hosted player. */
  readonly engine: EngineAddress | null;
  /** Null for an agent without resources. */
  readonly resources: AgentResources | null;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, of: number, waitingFor: string | null) => void;
}

export interface Played {
  readonly attempts: readonly AttemptRecord[];
  readonly costs: readonly AttemptCost[];
}

const TELL_EVERY_MS = 2000;

export async function playScenarios(options: PlayOptions): Promise<Played> {
  const { plan, player, engine, resources, signal, onProgress } = options;
  const { model, adapterSha256, hosted, rollout, place, price } = player;
  const connection = connectEngine(hosted === null ? engine! : hostedAddress(hosted));
  const { agentFile, scenarios, indexes, concurrency } = plan;
  const ledger = new Ledger();
  const playing = new Attempts({
    agent: agentFile.agent,
    // Numbered as in a run, so that `run@step` samples the same answers as in the run's own evaluation.
    planned: scenarios.map((scenario, attempt) => ({
      attempt,
      scenarioIndex: indexes[attempt]!,
      scenario,
      ...rolePlayersOf(agentFile.agent, player),
    })),
    concurrency,
    engine: connection,
    segments: inMemorySegments(),
    policy: { model, adapterSha256 },
    mode: hosted === null ? 'eval' : 'text',
    rollout,
    place,
    attemptKey: (attempt) => `eval/${model}/${attempt}`,
    signal,
    isFresh: () => true,
    resources,
    onAnswer: (facts) => ledger.add(facts),
    ...(hosted && { rewrite: createRewrite(hosted, plan.asked) }),
  });
  const timer = setInterval(() => {
    const { done, of, waiting } = playing.progress();
    onProgress(done, of, describeWaiting(waiting));
  }, TELL_EVERY_MS);
  try {
    const attempts = await playing.play();
    return { attempts: inAskedOrder(attempts, playing.callOrders()), costs: ledger.costs(price, hosted) };
  } finally {
    clearInterval(timer);
    await connection.close();
  }
}

/** Restores the order of calls: without a hosted model's prompt ids, the record orders them by hash. */
function inAskedOrder(
  attempts: readonly AttemptRecord[],
  orders: Readonly<Record<number, readonly number[]>>,
): AttemptRecord[] {
  return attempts.map((record) => ({
    ...record,
    calls: (orders[record.attempt] ?? []).map((index) => record.calls[index]!),
  }));
}
