/** Plays the attempts of `temper try`, all scenarios at once. Groups are printed in order, each as soon as it is done. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { toRewardMetrics } from '../../core/named-rewards.ts';
import { EVAL_ATTEMPTS_AT_ONCE } from '../../core/run-defaults.ts';
import { connectEngine, type EngineAddress, type EngineConnection } from '../../play/connections/engine-connection.ts';
import { hostedAddress } from '../../play/connections/providers.ts';
import { describeWaiting, type AttemptsProgress } from '../../play/play-attempts.ts';
import type { AgentResources } from '../../play/resources/agent-resources.ts';
import { openAgentResources } from '../../play/resources/open-agent-resources.ts';
import { placeOfThrow } from '../../play/place-of-throw.ts';
import { replaySaved } from '../../play/replay/replay-attempt.ts';
import { saveAttempt, type SavedAttempt } from '../../play/replay/saved-attempt.ts';
import { rewardGroup } from '../../play/reward-group.ts';
import { playSingle, type SingleAttempt, type SingleOptions } from '../../play/single-attempt.ts';
import { rolePlayersOf } from '../eval/role-players.ts';
import { createRewrite } from '../eval/players.ts';
import { Ledger } from '../eval/ledger.ts';
import type { TryPlan, TriedScenario } from './plan-try.ts';
import type { TriedAttempt, TriedGroup } from './tried.ts';

export interface TryOptions {
  readonly plan: TryPlan;
  /** Engine of the local stack; null for a hosted player. */
  readonly engine: EngineAddress | null;
  readonly signal: AbortSignal;
  /** Folder for attempts; null if they are not saved. */
  readonly saveFolder: string | null;
  readonly onProgress: (done: number, of: number, waitingFor: string | null) => void;
  readonly onGroup: (group: TriedGroup) => void;
}

const TELL_EVERY_MS = 2000;

export async function playTry(options: TryOptions): Promise<TriedGroup[]> {
  const { plan, engine, signal } = options;
  const { hosted } = plan.player;
  const connection = connectEngine(hosted === null ? engine! : hostedAddress(hosted));
  const ending = new AbortController();
  const resources = openAgentResources(plan.agentFile.agent, plan.store);
  const trial = new Trial(options, { connection, resources }, AbortSignal.any([signal, ending.signal]));
  const timer = setInterval(() => trial.tellProgress(), TELL_EVERY_MS);
  const groups = trial.begin();
  try {
    return await inOrder(groups, options.onGroup);
  } catch (error) {
    ending.abort();
    await Promise.allSettled(groups);
    throw error;
  } finally {
    clearInterval(timer);
    await resources?.close();
    await connection.close();
  }
}

async function inOrder(groups: readonly Promise<TriedGroup>[], onGroup: TryOptions['onGroup']): Promise<TriedGroup[]> {
  const played: TriedGroup[] = [];
  for (const playing of groups) {
    const group = await playing;
    played.push(group);
    onGroup(group);
  }
  return played;
}

/** Shared by all attempts. */
interface Opened {
  readonly connection: EngineConnection;
  /** Null for an agent without resources. */
  readonly resources: AgentResources | null;
}

class Trial {
  readonly #options: TryOptions;
  readonly #opened: Opened;
  readonly #signal: AbortSignal;
  readonly #progress: (() => AttemptsProgress)[] = [];

  constructor(options: TryOptions, opened: Opened, signal: AbortSignal) {
    this.#options = options;
    this.#opened = opened;
    this.#signal = signal;
  }

  begin(): Promise<TriedGroup>[] {
    const { scenarios, attempts } = this.#options.plan;
    const limit = pLimit(EVAL_ATTEMPTS_AT_ONCE);
    const groups = scenarios.map(async (tried) => {
      const playing = Array.from({ length: attempts }, (_, attempt) => limit(() => this.#play(tried, attempt)));
      return this.#reward(tried, await Promise.all(playing));
    });
    // Groups are awaited in order: an earlier rejection is handled then.
    for (const group of groups) group.catch(() => undefined);
    return groups;
  }

  tellProgress(): void {
    const { plan, onProgress } = this.#options;
    const all = this.#progress.map((progress) => progress());
    const waiting = all.find((progress) => progress.waiting !== null)?.waiting ?? null;
    const done = all.reduce((sum, progress) => sum + progress.done, 0);
    onProgress(done, plan.scenarios.length * plan.attempts, describeWaiting(waiting));
  }

  async #play(tried: TriedScenario, attempt: number): Promise<TriedAttempt> {
    const { plan, saveFolder } = this.#options;
    const options = this.#single(tried, attempt);
    const played = await playSingle(options);
    const saved = saveAttempt(played, options, this.#options.plan.isHeldOut);
    if (saveFolder !== null) await writeSaved(saveFolder, saved);
    const { record, asked, seconds, thrown } = played;
    return {
      record,
      asked,
      seconds,
      ...countTokens(played, plan),
      thrownAt: thrown === null ? null : placeOfThrow(thrown.error, plan.agentFile.agent.folder),
      replay: plan.isReplayed ? await describeReplay(plan, saved, this.#opened.resources) : null,
    };
  }

  /** The rewards that the agent's `rewardGroup` gives, as in a run. */
  async #reward({ scenario }: TriedScenario, attempts: readonly TriedAttempt[]): Promise<TriedGroup> {
    const { agent } = this.#options.plan.agentFile;
    const scenarioId = scenario.id;
    const data = attempts.filter(({ record }) => record.status === 'ok');
    if (agent.rewardGroup === undefined || data.length === 0) return { scenarioId, attempts };
    const records = data.map(({ record }) => record);
    const given = await rewardGroup(agent, { scenario, attempts: records, signal: this.#signal, tries: 1 });
    const rewarded = attempts.map((tried) => {
      const found = given[data.indexOf(tried)];
      if (found === undefined) return tried;
      const metrics = { ...tried.record.metrics, ...toRewardMetrics(found.named ?? {}) };
      return { ...tried, record: { ...tried.record, reward: found.reward, metrics } };
    });
    return { scenarioId, attempts: rewarded };
  }

  #single({ scenario, index }: TriedScenario, attempt: number): SingleOptions {
    const { player, agentFile, mode, rollout, asked } = this.#options.plan;
    const { model, adapterSha256, hosted, place } = player;
    return {
      agent: agentFile.agent,
      engine: this.#opened.connection,
      resources: this.#opened.resources,
      planned: { attempt, scenarioIndex: index, scenario, ...rolePlayersOf(agentFile.agent, player) },
      policy: { model, adapterSha256 },
      mode,
      rollout,
      place,
      signal: this.#signal,
      onBegin: (progress) => void this.#progress.push(progress),
      ...(hosted && { rewrite: createRewrite(hosted, asked) }),
    };
  }
}

/** Counts tokens by the engine's ids, and for a hosted model by its server's usage. */
function countTokens({ record, facts }: SingleAttempt, { player }: TryPlan) {
  if (player.hosted === null) {
    const sum = (lengths: readonly number[]) => lengths.reduce((total, length) => total + length, 0);
    return {
      promptTokens: sum(record.calls.map(({ promptTokenIds }) => promptTokenIds.length)),
      completionTokens: sum(record.calls.map(({ tokenIds }) => tokenIds.length)),
    };
  }
  const ledger = new Ledger();
  for (const each of facts) ledger.add(each);
  const [cost] = ledger.costs(null, null);
  return { promptTokens: cost?.promptTokens ?? null, completionTokens: cost?.completionTokens ?? null };
}

async function describeReplay(
  { agentFile }: TryPlan,
  saved: SavedAttempt,
  resources: AgentResources | null,
): Promise<string | null> {
  const { changed, notAsked } = await replaySaved(agentFile.agent, saved, resources);
  if (changed !== null) return changed.text;
  const answers = saved.calls.length + (saved.hostedCalls?.length ?? 0);
  return notAsked.length === 0 ? null : `it did not ask again for ${notAsked.length} of ${answers} answers`;
}

/** File named by scenario and attempt: the same command writes the same files. */
async function writeSaved(folder: string, saved: SavedAttempt): Promise<void> {
  await mkdir(folder, { recursive: true });
  const id = saved.scenario.id.replaceAll(/[^A-Za-z0-9._-]/g, '-').slice(0, 80);
  const file = join(folder, `${saved.scenarioIndex}-${id}-${saved.attempt}.json`);
  await writeFile(file, `${JSON.stringify(saved, null, 2)}\n`);
}
