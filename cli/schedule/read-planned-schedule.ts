/** From flags to a schedule that may be made: everything is checked here, before a server is asked. */
import { NAME_PATTERN } from '../../core/contract.ts';
import type { Checkpoint, RunConfig } from '../../core/contract.ts';
import { MAX_SCHEDULE_NAME } from '../../core/plan-firing.ts';
import { parseCron, parseInterval } from '../../core/schedule-timing.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import { newestOf, readFirings } from '../../store/records/schedules.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config.ts';
import type { CommandContext, Flags } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import { openProjectStore } from '../connections/project-store.ts';
import { resolveBaseModel } from '../../workers/base-model.ts';
import { checkFits, findNewest, findParent } from '../fork/find-parent.ts';
import type { Parent } from '../fork/find-parent.ts';
import { checkScenarios, loadAgent } from '../train/load-agent.ts';
import { checkJudge, judgeOptions } from '../train/check-judge.ts';
import { applyRunFlags, parseRunFlags } from '../train/run-flags.ts';

export interface PlannedSchedule {
  readonly name: string;
  readonly timing: Timing;
  /** What every run of it is; its name is the schedule's, until a firing gives it one. */
  readonly config: RunConfig;
  /** As `--from` names it. */
  readonly from: Checkpoint | null;
  /** What the first firing will begin with: that, or the last checkpoint of a schedule that had this name. */
  readonly begins: Checkpoint | null;
  readonly store: Store;
}

/** As Temporal takes it, and as it was written. */
export type Timing =
  | { readonly text: string; readonly everyMs: number; readonly cron: null }
  | { readonly text: string; readonly everyMs: null; readonly cron: string };

export async function readPlannedSchedule({
  flags,
  positionals,
  project,
  cwd,
  env,
}: CommandContext): Promise<PlannedSchedule> {
  const name = checkScheduleName(stringFlag(flags, 'name'));
  const timing = parseTiming(flags);
  const values = new Map(parseRunFlags(flags));
  values.delete('baseModel');
  const agentFile = await loadAgent(positionals[0]!, cwd);
  const baseModel = await nameBaseModel(stringFlag(flags, 'base-model'), { cwd, project, env });
  const { agent } = agentFile;
  const config = applyRunFlags({ run: name, agent: agent.name, baseModel, ...judgeOptions(agent) }, values);
  await checkScenarios(agentFile, config);
  const store = await openProjectStore(project, env);
  await checkJudge(agent, config, { store, env });
  const lineage = await findLineage(store, name);
  const from = await findFrom(store, stringFlag(flags, 'from'), name, lineage);
  const parent = lineage ?? from;
  if (parent !== null) checkFits(parent, config);
  await store.checkWritable();
  const begins = parent?.checkpoint ?? null;
  return { name, timing, config, from: from?.checkpoint ?? null, begins, store };
}

function checkScheduleName(name: string | null): string {
  if (name === null)
    throw new UsageError(
      '--name is missing; pass a name such as --name nightly (its runs are nightly-1, nightly-2, …)',
    );
  if (NAME_PATTERN.test(name) && name.length <= MAX_SCHEDULE_NAME) return name;
  throw new UsageError(
    `--name must be lower case letters, digits and ._- (at most ${MAX_SCHEDULE_NAME}, the first a letter or digit), got ${JSON.stringify(name)}; pass --name nightly`,
  );
}

function parseTiming(flags: Flags): Timing {
  const [every, cron] = [stringFlag(flags, 'every'), stringFlag(flags, 'cron')];
  if (every !== null && cron !== null) throw new UsageError('--every and --cron cannot be combined; pass one of them');
  if (every !== null) return { text: `every ${every}`, everyMs: parseInterval(every), cron: null };
  if (cron !== null) return { text: `cron ${parseCron(cron)}`, everyMs: null, cron: parseCron(cron) };
  throw new UsageError("a schedule needs a time; pass --every 1d, or --cron '0 3 * * *' (UTC)");
}

/** Workers that this command does not start play the firings: they know the names of temporal.config.ts, and the built-in ones. */
async function nameBaseModel(
  text: string | null,
  { cwd, project, env }: Pick<CommandContext, 'cwd' | 'project' | 'env'>,
): Promise<string> {
  if (text === null)
    throw new UsageError(
      '--base-model is missing; pass --base-model pocket, a name of temporal.config.ts, or an OWNER/NAME of the Hugging Face hub',
    );
  const { models: configured } = await loadConfig(project, env);
  const { name, models } = resolveBaseModel(text, cwd, project, configured);
  if (Object.keys(models).every((model) => Object.hasOwn(configured, model))) return name;
  throw new UsageError(
    `workers started later would not know --base-model ${text}; name it in temporal.config.ts (models: { ${JSON.stringify(name)}: ${JSON.stringify(models[name])} }) and pass --base-model ${name}`,
  );
}

/** A schedule that is made anew under its old name goes on where it was. */
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
  return NAME_PATTERN.test(text) ? findNewest(store, text) : findParent(store, text);
}
