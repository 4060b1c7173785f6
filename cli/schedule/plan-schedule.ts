/** Plan of a schedule from flags, with all checks that need no server. */
import type { Checkpoint, ProductionSource, RunConfig } from '../../core/contract.ts';
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { MAX_SCHEDULE_NAME } from '../../core/plan-firing.ts';
import { layoutOf } from '../../core/run-defaults.ts';
import { roleTrainOptions } from '../../core/roles.ts';
import { parseCron, parseInterval } from './schedule-timing.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import { newestOf, readFirings } from '../../store/records/schedules.ts';
import { findConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { readChatTemplate, type ChatTemplate } from '../planning/chat-template.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { UsageError } from '../command-line/errors.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { isConfigured, resolveBaseModel, type BaseModel } from '../../workers/base-models/base-model.ts';
import { requireBaseModel } from '../planning/base-model.ts';
import type { Parent } from '../planning/find-parent.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { judgeOptions } from '../planning/check-judge.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { checkAsked, pinRun } from '../planning/plan-run.ts';
import { roleOptions } from '../planning/read-roles.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import type { ScheduleCreateContext } from './command.ts';

export interface SchedulePlan {
  readonly name: string;
  readonly timing: Timing;
  /** Configuration of every run. Its name is the schedule's until a firing sets it. */
  readonly config: RunConfig;
  /** Checkpoint of `--from`. */
  readonly from: Checkpoint | null;
  /** Checkpoint that the first firing starts from: that one, or the last one of an earlier schedule of this name. */
  readonly begins: Checkpoint | null;
  readonly template: ChatTemplate | null;
  /** Recorded conversations that the runs train; null: they play the agent. */
  readonly production: ProductionSource | null;
  readonly store: Store;
}

/** Timing for Temporal, and as written. */
export type Timing =
  | { readonly text: string; readonly everyMs: number; readonly cron: null }
  | { readonly text: string; readonly everyMs: null; readonly cron: string };

export async function planSchedule(context: ScheduleCreateContext): Promise<SchedulePlan> {
  const { flags, args, project, cwd, env } = context;
  const name = checkScheduleName(flags.name);
  const timing = parseTiming(flags);
  const agentFile = await loadAgent(args.agent, cwd);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const named = requireBaseModel(flags, ', a name of temporal.config.ts');
  const model = await readConfiguredModel(named, context, template !== null);
  const store = await openProjectStore(project, env);
  const lineage = await findLineage(store, name);
  const from = await findFrom(store, flags.from, name, lineage);
  const parent = lineage ?? from;
  const { agent } = agentFile;
  const names = { run: name, agent: agent.name, baseModel: model.name };
  const reference = await readKlReference(store, flags['kl-reference'], null);
  const values = fieldsOf(flags, template, reference?.adapter);
  const train = { ...layoutOf(parent?.config ?? null), ...roleTrainOptions(agent) };
  const ofAgent = { ...judgeOptions(agent), ...(await roleOptions(agent, { store, env })) };
  const asked = applyRunFlags({ ...names, ...ofAgent, train }, values);
  const run = { asked, model, agentFile, parent, known: null, adapter: null, reference, store, flags: null };
  await checkAsked(run, context);
  const { config } = await pinRun(run, context);
  await store.checkWritable();
  const begins = parent?.checkpoint ?? null;
  return { name, timing, config, from: from?.checkpoint ?? null, begins, template, store, production: null };
}

export function checkScheduleName(name: string): string {
  if (NAME_PATTERN.test(name) && name.length <= MAX_SCHEDULE_NAME) return name;
  throw new UsageError(
    `--name must be lower case letters, digits and ._- (at most ${MAX_SCHEDULE_NAME}, the first a letter or digit), got ${JSON.stringify(name)}; pass --name nightly`,
  );
}

export function parseTiming({ every, cron }: ScheduleCreateContext['flags']): Timing {
  if (every !== null) return { text: `every ${every}`, everyMs: parseInterval(every), cron: null };
  if (cron !== null) return { text: `cron ${parseCron(cron)}`, everyMs: null, cron: parseCron(cron) };
  throw new UsageError("a schedule needs a time; pass --every 1d, or --cron '0 3 * * *' (UTC)");
}

/** Resolves a configured or built-in model: the workers of the firings know no others. */
export async function readConfiguredModel(
  text: string,
  { cwd, project, env }: Pick<CommandEnvironment, 'cwd' | 'project' | 'env'>,
  hasTemplate: boolean,
): Promise<BaseModel> {
  const { models: configured } = await loadConfig(project, env);
  const model = resolveBaseModel(text, cwd, project, configured, { hasTemplate });
  if (isConfigured(model, configured)) return model;
  const { name, models } = model;
  throw new UsageError(
    `workers started later would not know --base-model ${text}; name it in temporal.config.ts (models: { ${JSON.stringify(name)}: ${JSON.stringify(models[name])} }) and pass --base-model ${name}`,
  );
}

/** Last checkpoint of an earlier schedule of this name: the new one continues from it. */
async function findLineage(store: Store, name: string): Promise<Parent | null> {
  const checkpoint = newestOf(await readFirings(store, name));
  if (checkpoint === null) return null;
  return { checkpoint, config: (await requireRun(store, checkpoint.run)).file.config };
}

async function findFrom(
  store: Store,
  text: string | null,
  name: string,
  lineage: Parent | null,
): Promise<Parent | null> {
  if (text === null) return null;
  if (lineage !== null) {
    const { run } = lineage.checkpoint;
    throw new UsageError(
      `--from has no effect: a schedule ${name} has already trained ${run} and continues from it; choose another --name, or leave --from out`,
    );
  }
  return findConfiguredCheckpoint(store, readCheckpointName(text));
}
