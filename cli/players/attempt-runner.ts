/** Plays attempts outside of any run: recorder and rules are those of training, and nothing is stored. */
import pLimit from 'p-limit';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { plural } from '../../core/reports/format.ts';
import { adapterOf } from '../../core/names/policy-name.ts';
import { seatedPolicy } from '../../core/rules/roles.ts';
import type { Agent } from '../../play/agent.ts';
import { connectEngine, type EngineAddress, type EngineConnection } from '../../play/connections/engine-connection.ts';
import { costOf, hostedAddress, readUsed } from '../../play/connections/providers.ts';
import { describeWaiting, type AttemptsProgress, type PlannedAttempt } from '../../play/play-attempts.ts';
import type { AnswerFacts } from '../../play/recorder/recorder.ts';
import type { RequestMode } from '../../play/recorder/request.ts';
import type { AgentResources } from '../../play/resources/agent-resources.ts';
import { playersOutside, type RolePlayers } from '../../play/roles/role-definition.ts';
import { playSingle, type SingleAttempt, type SingleOptions } from '../../play/single-attempt.ts';
import { createRewrite, type AskedSettings, type Player } from './players.ts';

export interface RunnerOptions {
  readonly agent: Agent;
  readonly player: Player;
  /** Engine of the local stack; null for a hosted player. */
  readonly engine: EngineAddress | null;
  /** Null for an agent without resources. */
  readonly resources: AgentResources | null;
  readonly mode: RequestMode;
  readonly rollout: RolloutConfig;
  /** Settings for a hosted model. */
  readonly asked: AskedSettings;
  readonly concurrency: number;
  readonly signal: AbortSignal;
  /** Number of all attempts. */
  readonly of: number;
  /** Told every few seconds how many are played, and what they wait for. */
  readonly tell: (line: string) => void;
}

/** Calls, tokens, cost and time of an attempt, as reported by the servers. */
export interface AttemptCost {
  readonly calls: number;
  /** Null if an answer did not report it. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly costUsd: number | null;
  /** Mean over calls. */
  readonly latencySeconds: number;
}

export interface RunAttempt extends SingleAttempt {
  readonly options: SingleOptions;
  /** Null for an attempt that made no call. */
  readonly cost: AttemptCost | null;
}

const TELL_EVERY_MS = 2000;

export class AttemptRunner {
  readonly #options: RunnerOptions;
  readonly #connection: EngineConnection;
  readonly #limit: ReturnType<typeof pLimit>;
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  readonly #playing = new Set<() => AttemptsProgress | null>();
  #done = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(options: RunnerOptions) {
    const { player, engine, concurrency, signal } = options;
    this.#options = options;
    this.#connection = connectEngine(player.hosted === null ? engine! : hostedAddress(player.hosted));
    this.#limit = pLimit(concurrency);
    this.#signal = AbortSignal.any([signal, this.#ending.signal]);
    this.#timer = setInterval(() => this.#tellProgress(), TELL_EVERY_MS);
  }

  get signal(): AbortSignal {
    return this.#signal;
  }

  /** As soon as a place is free. */
  play(planned: PlannedAttempt): Promise<RunAttempt> {
    return this.#limit(async () => {
      const { agent, resources, player, mode, rollout, asked } = this.#options;
      const { model, adapterSha256, hosted, place, price } = player;
      const options: SingleOptions = {
        agent,
        engine: this.#connection,
        resources,
        planned: { ...planned, ...rolePlayersOf(agent, player) },
        policy: { model, adapterSha256 },
        mode,
        rollout,
        place,
        signal: this.#signal,
        ...(hosted && { rewrite: createRewrite(hosted, asked) }),
      };
      const played = await this.#playSingle(options);
      return { ...played, options, cost: costOfAnswers(played.facts, { hosted, price }) };
    });
  }

  async #playSingle(options: SingleOptions): Promise<SingleAttempt> {
    let progress = (): AttemptsProgress | null => null;
    const tell = () => progress();
    this.#playing.add(tell);
    try {
      const played = await playSingle({ ...options, onBegin: (began) => (progress = began) });
      this.#done += 1;
      return played;
    } finally {
      this.#playing.delete(tell);
    }
  }

  /** Waits for all of them; a failure ends the others. */
  async all<T>(playing: readonly Promise<T>[]): Promise<T[]> {
    try {
      return await Promise.all(playing);
    } catch (error) {
      this.#ending.abort();
      await Promise.allSettled(playing);
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#connection.close();
  }

  #tellProgress(): void {
    const { of, tell } = this.#options;
    const waits = [...this.#playing].map((progress) => progress()?.waiting ?? null);
    const waitingFor = describeWaiting(waits.find((waiting) => waiting !== null) ?? null);
    tell(`played ${this.#done} of ${plural(of, 'attempt')}${waitingFor === null ? '' : `, waiting for ${waitingFor}`}`);
  }
}

/** Empty where one policy plays every role: without roles, or if it was named alone, as `RUN@STEP:b` or a base model. */
function rolePlayersOf(
  { roles }: Pick<Agent, 'roles'>,
  { checkpoint: target, model, adapterSha256 }: Player,
): { players?: RolePlayers } {
  if (roles === undefined || target === null || adapterSha256 !== target.checkpoint.adapterSha256) return {};
  const { checkpoint } = target;
  const playerOf = (policy: string) =>
    adapterOf(checkpoint, policy) === undefined ? { model, adapterSha256 } : seatedPolicy({ checkpoint, policy });
  return { players: playersOutside(roles, playerOf) };
}

function costOfAnswers(
  facts: readonly AnswerFacts[],
  { hosted, price }: Pick<Player, 'hosted' | 'price'>,
): AttemptCost | null {
  if (facts.length === 0) return null;
  const promptTokens = total(facts, ({ usage }) => readUsed(usage).promptTokens);
  const completionTokens = total(facts, ({ usage }) => readUsed(usage).completionTokens);
  const cost = total(facts, ({ usage }) => readUsed(usage).cost);
  const seconds = facts.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  return {
    calls: facts.length,
    promptTokens,
    completionTokens,
    costUsd: costOf(hosted ?? {}, price, { promptTokens, completionTokens, cost }),
    latencySeconds: seconds / facts.length,
  };
}

function total(facts: readonly AnswerFacts[], value: (facts: AnswerFacts) => number | null): number | null {
  const values = facts.map(value);
  return values.reduce<number | null>((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}
