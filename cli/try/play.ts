/** Plays the attempts of `temper try`, all scenarios at once. Groups are printed in order, each as soon as it is done. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toRewardMetrics } from '../../core/rules/named-rewards.ts';
import { EVAL_ATTEMPTS_AT_ONCE } from '../../core/rules/run-defaults.ts';
import { placeOfThrow } from '../../play/place-of-throw.ts';
import { replaySaved } from '../../play/replay/replay-attempt.ts';
import { saveAttempt, type SavedAttempt } from '../../play/replay/saved-attempt.ts';
import { type AgentResources, openAgentResources } from '../../play/resources/agent-resources.ts';
import { rewardGroup } from '../../play/reward-group.ts';
import { AttemptRunner, type RunnerOptions } from '../players/attempt-runner.ts';
import type { TryPlan, TriedScenario } from './plan-try.ts';
import type { AttemptRecord, CallRecord } from '../../store/records/groups/trajectories.ts';

export interface TriedAttempt {
  readonly record: AttemptRecord;
  /** Calls of the record in the order of the agent's requests. */
  readonly asked: readonly CallRecord[];
  readonly seconds: number;
  /** Null if the server did not report it. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** Location at which the agent's code threw, such as `agent.ts:12:5`; null if it did not or if unknown. */
  readonly thrownAt: string | null;
  /** Difference of a replay on the recorded answers; null if there is none, or no replay. */
  readonly replay: string | null;
}

/** The attempts at one scenario. */
export interface TriedGroup {
  readonly scenarioId: string;
  readonly attempts: readonly TriedAttempt[];
}

export interface TrySummary {
  readonly agent: string;
  readonly model: string;
  readonly groups: readonly TriedGroup[];
  readonly warnings: readonly string[];
  /** Checks that were not possible. */
  readonly notes: readonly string[];
}

export interface TryOptions extends Pick<RunnerOptions, 'engine' | 'signal' | 'tell'> {
  readonly plan: TryPlan;
  /** Folder for attempts; null if they are not saved. */
  readonly saveFolder: string | null;
  readonly onGroup: (group: TriedGroup) => void;
}

export async function playTry(options: TryOptions): Promise<TriedGroup[]> {
  const { plan, onGroup } = options;
  const { agentFile, store, scenarios, attempts } = plan;
  const resources = openAgentResources(agentFile.agent, store);
  const runner = new AttemptRunner({
    ...plan,
    ...options,
    agent: agentFile.agent,
    resources,
    concurrency: EVAL_ATTEMPTS_AT_ONCE,
    of: scenarios.length * attempts,
  });
  let shown: Promise<unknown> = Promise.resolve();
  const groups = scenarios.map((tried) => {
    const group = Promise.all([playGroup(tried, { ...options, runner, resources }), shown]).then(([played]) => {
      onGroup(played);
      return played;
    });
    shown = group;
    return group;
  });
  try {
    return await runner.all(groups);
  } finally {
    await resources?.close();
    await runner.close();
  }
}

interface Opened extends TryOptions {
  readonly runner: AttemptRunner;
  /** Null for an agent without resources. */
  readonly resources: AgentResources | null;
}

/** The attempts at a scenario, with the rewards that the agent's `rewardGroup` gives, as in a run. */
async function playGroup(tried: TriedScenario, opened: Opened): Promise<TriedGroup> {
  const { plan, runner } = opened;
  const playing = Array.from({ length: plan.attempts }, (_, attempt) => playAttempt(tried, attempt, opened));
  const attempts = await Promise.all(playing);
  const { agent } = plan.agentFile;
  const { scenario } = tried;
  const scenarioId = scenario.id;
  const data = attempts.filter(({ record }) => record.status === 'ok');
  if (agent.rewardGroup === undefined || data.length === 0) return { scenarioId, attempts };
  const records = data.map(({ record }) => record);
  const given = await rewardGroup(agent, { scenario, attempts: records, signal: runner.signal, tries: 1 });
  const rewarded = attempts.map((each) => {
    const found = given[data.indexOf(each)];
    if (found === undefined) return each;
    const metrics = { ...each.record.metrics, ...toRewardMetrics(found.named ?? {}) };
    return { ...each, record: { ...each.record, reward: found.reward, metrics } };
  });
  return { scenarioId, attempts: rewarded };
}

async function playAttempt(
  { scenario, index }: TriedScenario,
  attempt: number,
  { plan, runner, resources, saveFolder }: Opened,
): Promise<TriedAttempt> {
  const played = await runner.play({ attempt, scenarioIndex: index, scenario });
  const saved = saveAttempt(played, played.options, plan.isHeldOut);
  if (saveFolder !== null) await writeSaved(saveFolder, saved);
  const { record, asked, seconds, thrown, cost } = played;
  return {
    record,
    asked,
    seconds,
    // An attempt without calls used no tokens.
    promptTokens: cost === null ? 0 : cost.promptTokens,
    completionTokens: cost === null ? 0 : cost.completionTokens,
    thrownAt: thrown === null ? null : placeOfThrow(thrown.error, plan.agentFile.agent.folder),
    replay: plan.isReplayed ? await describeReplay(plan, saved, resources) : null,
  };
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
