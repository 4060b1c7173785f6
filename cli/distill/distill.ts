/** Recorded attempts as examples for supervised training. */
import { link, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ChatExample } from '../../core/chat-examples.ts';
import { distill, recordedCall, type RatedAttempt } from './distilled-chats.ts';
import { TemperError } from '../../core/failures.ts';
import { branchOfStep, planLineage } from '../../core/lineage.ts';
import { listSteps } from '../../store/records/checkpoints.ts';
import { findCheckpoint } from '../../store/records/find-checkpoint.ts';
import { readBranches } from '../../store/records/lineage.ts';
import { readGroups, requireRun, type PlayedGroup } from '../../store/records/run-reader.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readCheckpointName } from '../command-line/values.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { formatNumber, plural } from '../terminal/format.ts';
import type { distillCommand } from './command.ts';
import { readSavedAttempts } from './saved-attempts.ts';

export async function distillRun(context: CommandContext<typeof distillCommand>): Promise<number> {
  const { flags, cwd, output } = context;
  const share = Number.parseFloat(flags.top) / 100;
  const { source, played } = await readPlayed(context);
  const { attempts, examples, repeated, empty } = distill(played, share);
  if (examples.length === 0)
    throw new UsageError(
      `${source} must have attempts to take, but ${flags.top} of its ${played.length} attempts with a reward are none; pass a larger --top, or name other attempts`,
    );
  const file = resolve(cwd, flags.out);
  await writeNew(file, examples.map(toLine).join(''));
  const [best, worst] = [attempts[0]!, attempts.at(-1)!].map(({ reward }) => formatNumber(reward));
  output.line(
    `${attempts.length} of ${plural(played.length, 'attempt')}, reward ${best} to ${worst}: ${plural(examples.length, 'example')} in ${file}`,
  );
  if (repeated > 0) output.line(`note: ${plural(repeated, 'repeated conversation')} left out`);
  if (empty > 0) output.line(`note: ${plural(empty, 'conversation')} with an empty answer left out`);
  return EXIT.ok;
}

/** Writes the whole file or nothing, and never replaces an existing one. */
async function writeNew(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, text, { flag: 'wx' });
    await link(temporary, file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw unwritten(file, code, error);
    throw new UsageError(
      `--out must be a new file (temper distill overwrites nothing), but ${file} exists; pass another one, or remove it first`,
    );
  } finally {
    await rm(temporary, { force: true });
  }
}

function unwritten(file: string, code: string | undefined, cause: unknown): TemperError {
  const rule = `--out must be a file that can be written, got ${file} (${code})`;
  return new TemperError('BadConfig', `${rule}; pass another one`, { cause });
}

/** Attempts of a run or of a folder; `source` is its name. */
async function readPlayed({ args, flags, project, cwd, env }: CommandContext<typeof distillCommand>) {
  const source = args.checkpoint ?? flags.attempts;
  if (source === null || (args.checkpoint !== null && flags.attempts !== null))
    throw new UsageError('attempts must come from one place: name a CHECKPOINT, or pass --attempts FOLDER');
  if (args.checkpoint === null) return { source, played: await readSavedAttempts(resolve(cwd, source)) };
  const name = readCheckpointName(source);
  const store = await openProjectStore(project, env);
  await requireRun(store, name.run);
  const sampler = source === name.run ? null : (await findCheckpoint(store, name)).adapterSha256;
  return { source, played: await readAttempts(store, name.run, sampler) };
}

/** JSON line of an example; its position in the file is its id. */
function toLine({ messages, tools, metadata }: ChatExample): string {
  return `${JSON.stringify({ messages, ...(tools === undefined ? {} : { tools }), metadata })}\n`;
}

/** Attempts on the branches of the run's current line, or of one policy on any branch. */
async function readAttempts(store: Store, run: string, sampler: string | null): Promise<RatedAttempt[]> {
  const branches = await readBranches(store, run);
  const lineage = planLineage(branches, branches.at(-1)?.branch ?? 0);
  const attempts: RatedAttempt[] = [];
  for (const place of await listSteps(store, run)) {
    if (sampler === null && place.branch !== branchOfStep(lineage, place.step)) continue;
    const groups = await readGroups(store, place);
    const chosen = groups.filter(({ rollouts }) => sampler === null || rollouts.header.adapterSha256 === sampler);
    attempts.push(...chosen.flatMap((group) => rate(group, place.step)));
  }
  return attempts;
}

/** Rewards are those of the verdict, which may differ from the agent's. */
function rate({ group, rollouts, judged }: PlayedGroup, step: number): RatedAttempt[] {
  return rollouts.attempts.flatMap((record, index) => {
    const reward = judged?.rewards[index] ?? null;
    if (record.status !== 'ok' || record.truncated || reward === null || record.calls.length === 0) return [];
    return [{ reward, place: { step, group, attempt: record.attempt }, calls: callsOf(record) }];
  });
}

function callsOf({ calls }: AttemptRecord): RatedAttempt['calls'] {
  return calls.map(({ request, message }) => recordedCall(request, message));
}
