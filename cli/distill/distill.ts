/** Recorded attempts as examples for supervised training. */
import { resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { distill, rolePartsOf, recordedCall, toLine, type RatedAttempt } from './chats/distilled-chats.ts';
import type { RunConfig, TrainedRoles } from '../../core/contract/contract.ts';
import { otherPolicies, trainedRoles } from '../../core/rules/roles.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { listSteps } from '../../store/records/runs/checkpoints.ts';
import { findCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readLineage } from '../../store/records/runs/lineage.ts';
import { readGroups, requireRun, type PlayedGroup } from '../../store/records/runs/run-reader.ts';
import type { CallRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readTrainedName } from '../command-line/values.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { writeWhole } from '../command-line/files.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { distillCommand } from './command.ts';
import { readSavedAttempts } from './saved-attempts.ts';

export async function distillRun(context: CommandContext<typeof distillCommand>): Promise<number> {
  const { flags, cwd, output } = context;
  requireOnePlace(context);
  if (fromTraces(flags)) return (await import('./traces/distill-traces.ts')).distillTraces(context);
  if (flags.top === null) throw badConfig('--top is missing; pass --top 25%');
  const share = Number.parseFloat(flags.top) / 100;
  const { source, played } = await readPlayed(context);
  const { attempts, examples, repeated, empty } = distill(played, share);
  if (examples.length === 0)
    throw badConfig(
      `${source} must have attempts to take, but ${flags.top} of its ${played.length} attempts with a reward are none; pass a larger --top, or name other attempts`,
    );
  const file = resolve(cwd, flags.out);
  await writeWhole('--out', file, examples.map(toLine).join(''), 'new');
  const [best, worst] = [attempts[0]!, attempts.at(-1)!].map(({ reward }) => formatNumber(reward));
  output.line(
    `${attempts.length} of ${plural(played.length, 'attempt')}, reward ${best} to ${worst}: ${plural(examples.length, 'example')} in ${file}`,
  );
  if (repeated > 0) output.line(`note: ${plural(repeated, 'repeated conversation')} left out`);
  if (empty > 0) output.line(`note: ${plural(empty, 'conversation')} with an empty answer left out`);
  return EXIT.ok;
}

type Flags = CommandContext<typeof distillCommand>['flags'];

function fromTraces(flags: Flags): boolean {
  return flags['from-otlp'] !== null || flags['from-langfuse'];
}

function requireOnePlace({ args, flags }: CommandContext<typeof distillCommand>): void {
  const places = [args.checkpoint, flags.attempts, flags['from-otlp'], flags['from-langfuse'] || null];
  if (places.filter((place) => place !== null).length !== 1)
    throw badConfig(
      'attempts must come from one place: name a CHECKPOINT, or pass --attempts FOLDER, --from-otlp FILE or --from-langfuse',
    );
}

/** Attempts of a run or of a folder; `source` is its name. */
async function readPlayed({ args, flags, project, cwd, env }: CommandContext<typeof distillCommand>) {
  const source = args.checkpoint ?? flags.attempts!;
  if (args.checkpoint === null) return { source, played: await readSavedAttempts(resolve(cwd, source)) };
  const name = readTrainedName(source);
  const { policy = MAIN_POLICY } = name;
  const store = await openProjectStore(project, env);
  const isWholeRun = source.replace(/:.*/, '') === name.run;
  const checkpoint = isWholeRun ? null : await findCheckpoint(store, name);
  const { run } = checkpoint ?? name;
  const { file } = await requireRun(store, run);
  requirePolicy(source, policy, file.config);
  const groups = await readPlayedGroups(store, run, checkpoint?.adapterSha256 ?? null);
  return { source, played: groups.flatMap((played) => rate(played, trainedRoles(file.config), policy)) };
}

function requirePolicy(source: string, policy: string, config: RunConfig): void {
  const known = [MAIN_POLICY, ...otherPolicies(config)];
  if (known.includes(policy)) return;
  throw badConfig(
    `${source} must name a policy of the run (it has ${known.join(', ')}), got ${policy}; name one of them after a colon, or leave it out for main`,
  );
}

interface PlacedGroup {
  readonly step: number;
  readonly played: PlayedGroup;
}

/** Groups on the branches of the run's current line, or of one checkpoint on any branch. */
async function readPlayedGroups(store: Store, run: string, sampler: string | null): Promise<PlacedGroup[]> {
  const lineage = await readLineage(store, run);
  const found: PlacedGroup[] = [];
  for (const place of await listSteps(store, run)) {
    if (sampler === null && place.branch !== branchOfStep(lineage, place.step)) continue;
    const groups = await readGroups(store, place);
    const chosen = groups.filter(({ rollouts }) => sampler === null || rollouts.header.adapterSha256 === sampler);
    found.push(...chosen.map((played) => ({ step: place.step, played })));
  }
  return found;
}

/** Rewards are those of the verdict, which may differ from the agent's. */
function rate({ step, played }: PlacedGroup, roles: TrainedRoles | undefined, policy: string): RatedAttempt[] {
  const { group, rollouts, judged } = played;
  return rollouts.attempts.flatMap((record, index) => {
    const reward = judged?.rewards[index] ?? null;
    if (record.status !== 'ok' || record.truncated || reward === null) return [];
    const parts = rolePartsOf({ ...record, reward }, roles, policy);
    return parts.map(({ role, ...part }) => ({
      reward: part.reward,
      place: { step, group, attempt: record.attempt, ...(role !== undefined && { role }) },
      calls: callsOf(part),
    }));
  });
}

function callsOf({ calls }: { calls: readonly CallRecord[] }): RatedAttempt['calls'] {
  return calls.map(({ request, message }) => recordedCall(request, message));
}
