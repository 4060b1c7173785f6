/** Plan of a schedule from flags, with all checks that need no server. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Checkpoint, ProductionSource, RunConfig } from '../../core/contract/contract.ts';
import { MAX_SCHEDULE_NAME } from '../../core/plan/firing.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { findConfiguredCheckpoint } from '../../store/records/runs/find-policy.ts';
import { findProductionStart } from '../../store/records/production/firings.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import { newestOf, readFirings } from '../../store/records/production/schedules.ts';
import type { Store } from '../../store/store.ts';
import { readCheckpointName } from '../command-line/values.ts';
import type { ChatTemplate } from '../planning/chat-template.ts';
import { draftRun, type RunRequest } from '../planning/draft-run.ts';
import type { Parent } from '../planning/find-parent.ts';
import { readRunSource } from '../planning/run-source.ts';
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
  const { flags, args } = context;
  const name = checkScheduleName(flags.name);
  const timing = parseTiming(flags);
  const source = readRunSource({ source: args.agent, flags });
  if (source.kind === 'chats')
    throw badConfig(`a schedule needs an agent, got the file of chats ${source.file}; name the agent's file`);
  const production = source.kind === 'production' ? source.production : null;
  let from: Checkpoint | null = null;
  const request: RunRequest = {
    source,
    name,
    async start(store) {
      const start = await (production === null
        ? findStart(store, flags.from, name)
        : findServed(store, flags.from, production));
      ({ from } = start);
      return start.parent;
    },
    flags,
    engine: null,
  };
  const { config, parent, template, store } = await draftRun(context, request);
  await store.checkWritable();
  const begins = parent?.checkpoint ?? null;
  return { name, timing, config: asTemplate(config), from, begins, template, store, production };
}

/** Each firing sets them. */
function asTemplate({ production: _production, ...config }: RunConfig): RunConfig {
  return { ...config, parent: null };
}

function checkScheduleName(name: string): string {
  if (NAME_PATTERN.test(name) && name.length <= MAX_SCHEDULE_NAME) return name;
  throw badConfig(
    `--name must be lower case letters, digits and ._- (at most ${MAX_SCHEDULE_NAME}, the first a letter or digit), got ${JSON.stringify(name)}; pass --name nightly`,
  );
}

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Temporal reads the cron line, and says what is wrong with it. */
function parseTiming({ every, cron }: ScheduleCreateContext['flags']): Timing {
  if (every !== null) {
    const everyMs = Number(every.slice(0, -1)) * UNITS_MS[every.slice(-1)]!;
    return { text: `every ${every}`, everyMs, cron: null };
  }
  if (cron !== null) return { text: `cron ${cron}`, everyMs: null, cron };
  throw badConfig("a schedule needs a time; pass --every 1d, or --cron '0 3 * * *' (UTC)");
}

interface Start {
  /** Checkpoint of `--from`. */
  readonly from: Checkpoint | null;
  readonly parent: Parent | null;
}

async function findServed(store: Store, text: string | null, source: ProductionSource): Promise<Start> {
  const from = text === null ? null : (await findConfiguredCheckpoint(store, readCheckpointName(text))).checkpoint;
  const checkpoint = await findProductionStart(store, source, from);
  return { from, parent: { ...(await findConfiguredCheckpoint(store, checkpoint)), checkpoint } };
}

/** The last checkpoint of an earlier schedule of this name, which the new one continues; else that of `--from`. */
async function findStart(store: Store, text: string | null, name: string): Promise<Start> {
  const newest = newestOf(await readFirings(store, name));
  if (newest === null) {
    const parent = text === null ? null : await findConfiguredCheckpoint(store, readCheckpointName(text));
    return { from: parent?.checkpoint ?? null, parent };
  }
  if (text === null)
    return { from: null, parent: { checkpoint: newest, config: (await requireRun(store, newest.run)).file.config } };
  throw badConfig(
    `--from has no effect: a schedule ${name} has already trained ${newest.run} and continues from it; choose another --name, or leave --from out`,
  );
}
