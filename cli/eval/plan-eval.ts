/** From `temper eval`'s flags to what is played, by whom, and where; checked before anything is started. */
import type { RolloutConfig } from '../../core/contract.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import type { Scenario } from '../../sdk/define-agent.ts';
import { readScenarios } from '../../sdk/scenarios.ts';
import { readScenarios as readRecorded } from '../../store/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config.ts';
import { stringFlag } from '../command.ts';
import type { CommandContext, Flags } from '../command.ts';
import { UsageError } from '../errors.ts';
import { openProjectStore } from '../project-store.ts';
import { resolveBaseModel } from '../../workers/base-model.ts';
import { loadAgent } from '../train/load-agent.ts';
import type { AgentFile } from '../train/load-agent.ts';
import { findCheckpoint } from './target.ts';
import type { CheckpointTarget } from './target.ts';

export interface PlannedEval {
  readonly agentFile: AgentFile;
  readonly scenarios: readonly Scenario[];
  /** Index of the first one, as a run counts them. */
  readonly firstScenario: number;
  readonly model: string;
  readonly adapterSha256: string | null;
  readonly models: Readonly<Record<string, string>>;
  readonly rollout: RolloutConfig;
  readonly place: { seed: number; branch: number; step: number };
  readonly concurrency: number;
  /** A server elsewhere; null: the local stack's engine. */
  readonly elsewhere: { readonly url: string; readonly key: string | null } | null;
}

/** As many as a run's evaluation plays at once. */
const DEFAULT_CONCURRENCY = 64;

export async function planEval(context: CommandContext): Promise<PlannedEval> {
  const { flags, positionals, project, cwd } = context;
  const agentFile = await loadAgent(positionals[0]!, cwd);
  const elsewhere = planElsewhere(context);
  const store = await openProjectStore(project);
  const { checkpoint, model, models } = await findPlayer(context, store, elsewhere !== null);
  const { agent } = agentFile;
  const config = checkpoint?.config ?? defaultRunConfig({ run: agent.name, agent: agent.name, baseModel: 'pocket' });
  return {
    agentFile,
    ...(await heldOut(store, agentFile, checkpoint, countFlag(flags, 'scenarios') ?? config.evalScenarios)),
    model,
    adapterSha256: checkpoint?.adapterSha256 ?? null,
    models,
    rollout: { ...config.rollout, temperature: temperatureFlag(flags) ?? config.rollout.temperature },
    place: { branch: 0, step: 0, ...checkpoint?.policy, seed: countFlag(flags, 'seed') ?? config.seed },
    concurrency: countFlag(flags, 'concurrency') ?? DEFAULT_CONCURRENCY,
    elsewhere,
  };
}

interface Player {
  readonly model: string;
  readonly models: Readonly<Record<string, string>>;
  readonly checkpoint: CheckpointTarget | null;
}

async function findPlayer(
  { flags, project, cwd }: CommandContext,
  store: Store,
  isElsewhere: boolean,
): Promise<Player> {
  const model = stringFlag(flags, 'model');
  if (model === null)
    throw new UsageError('--model is missing; pass run@step, a run, a base model, or a name that --base-url knows');
  if (isElsewhere) return { model, models: {}, checkpoint: null };
  const checkpoint = await findCheckpoint(store, model);
  if (checkpoint !== null) return { model: checkpoint.model, models: {}, checkpoint };
  const base = resolveBaseModel(model, cwd, project, (await loadConfig(project)).models);
  return { model: base.name, models: base.models, checkpoint: null };
}

function planElsewhere({ flags, env }: CommandContext): PlannedEval['elsewhere'] {
  const url = stringFlag(flags, 'base-url');
  const variable = stringFlag(flags, 'key-env');
  if (url === null) {
    if (variable !== null) throw new UsageError('--key-env has no effect without --base-url; pass both');
    return null;
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageError(
      `--base-url must be an http(s) URL, got ${JSON.stringify(url)}; pass one like https://api.openai.com/v1`,
    );
  }
  if (variable === null) return { url, key: null };
  const key = env[variable];
  if (key === undefined || key === '') throw new UsageError(`--key-env names ${variable}, which is not set; export it`);
  return { url, key };
}

type HeldOut = Pick<PlannedEval, 'scenarios' | 'firstScenario'>;

/** Those of the run where a checkpoint of this agent is played, so that its numbers compare with the run's own. */
async function heldOut(
  store: Store,
  { agent, path }: AgentFile,
  checkpoint: CheckpointTarget | null,
  limit: number,
): Promise<HeldOut> {
  if (checkpoint?.prepared && checkpoint.config.agent === agent.name) {
    const lines = await readRecorded(store, checkpoint.prepared);
    const firstScenario = checkpoint.prepared.trainScenarios;
    const scenarios = lines.slice(firstScenario, firstScenario + limit).map(({ scenario }) => scenario as Scenario);
    return { scenarios, firstScenario };
  }
  return {
    scenarios: nonEmpty(await readScenarios(agent.evalScenarios ?? agent.scenarios, limit), path),
    firstScenario: 0,
  };
}

function nonEmpty(scenarios: readonly Scenario[], path: string): readonly Scenario[] {
  if (scenarios.length > 0) return scenarios;
  throw new UsageError(`the agent has no scenarios to play (${path}); give it at least one`);
}

function countFlag(flags: Flags, name: string): number | null {
  const text = stringFlag(flags, name);
  if (text === null) return null;
  const smallest = name === 'seed' ? 0 : 1;
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) && Number(text) >= smallest) return Number(text);
  throw new UsageError(
    `--${name} must be a whole number of at least ${smallest}, got ${JSON.stringify(text)}; pass --${name} N`,
  );
}

function temperatureFlag(flags: Flags): number | null {
  const text = stringFlag(flags, 'temperature');
  if (text === null) return null;
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0 && value <= 2) return value;
  throw new UsageError(`--temperature must be a number from 0 to 2, got ${JSON.stringify(text)}; pass --temperature 1`);
}
