/** Plays a planned run to its end for a user, or shows a complete one. */
import { relative, resolve } from 'node:path';
import { badConfig, WorkFailed } from '../../core/contract/failures.ts';
import { NONE } from '../../operations/flags.ts';
import { describeRun } from '../../core/reports/describe-config.ts';
import type { StackReleased } from '../../workers/local-stack/daemon-connection.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { TrackFlags } from '../command-line/track-flags.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { requireTrace, requireTracker } from '../../workers/config/targets.ts';
import { engineOverrides, type EngineFlags } from '../command-line/engine-flags.ts';
import { EXIT } from '../command-line/errors.ts';
import { glossaryLine } from '../command-line/help.ts';
import { isEnded } from '../../store/records/runs/run-reader.ts';
import { readProgress, unlessAway } from '../watch/follow-run.ts';
import type { RunPlan } from '../planning/run-plan.ts';

type AskedFlags = EngineFlags & Partial<TrackFlags>;

export async function playRun(context: CommandEnvironment, plan: RunPlan, asked: AskedFlags): Promise<number> {
  const targets = await readTargets({ track: asked.track ?? [], trace: asked.trace ?? [] }, context);
  return plan.isComplete ? showCompleted(context, plan, asked) : play(context, plan, { ...asked, targets });
}

/** Needs only the store. The other flags were compared with the run's configuration. */
async function showCompleted(context: CommandEnvironment, plan: RunPlan, asked: AskedFlags): Promise<number> {
  const { config } = plan;
  context.output.line(`the run ${config.run} is complete; to start another run, pass --run NAME`);
  const idle = idleFlags(asked);
  if (idle !== null) context.output.line(idle);
  await tellResult(context, plan);
  return EXIT.ok;
}

/** Note instead of an error, because "run the same command to continue" also holds for a run that has ended. */
function idleFlags({ engine, device, dtype, devices, ...switches }: AskedFlags): string | null {
  const given = Object.entries({ engine, device, dtype, devices }).flatMap(([name, value]) =>
    value === null ? [] : [`--${name} ${value}`],
  );
  if (switches['load-in-4bit']) given.push('--load-in-4bit');
  if (switches['shard-base-model']) given.push('--shard-base-model');
  if (given.length === 0) return null;
  const [have, them] = given.length === 1 ? ['has', 'it'] : ['have', 'them'];
  return `note: ${given.join(' and ')} ${have} no effect, because a complete run computes nothing; leave ${them} out, or pass --run NAME`;
}

async function play(
  context: CommandEnvironment,
  plan: RunPlan,
  asked: EngineFlags & { targets: string[] },
): Promise<number> {
  const { createViewer } = await import('../watch/viewer.ts');
  const { playSession } = await import('./play-session.ts');
  const { output, project, signal, env } = context;
  const { run } = plan.config;
  if (plan.existing === null) {
    output.line(describeRun(plan.config));
    output.line(glossaryLine(context.cwd));
  }
  const before = { state: plan.existing?.state ?? null, steps: plan.existing?.steps ?? [] };
  let left: StackReleased | null = null;
  const onLeft = (told: StackReleased) => {
    left = told;
  };
  const viewer = createViewer(output, { run, before, hint: 'Ctrl-C stops watching; run the same command to continue' });
  try {
    const { targets } = asked;
    await playSession({ plan, targets, project, viewer, signal, env, overrides: engineOverrides(asked), onLeft });
    viewer.close();
  } catch (error) {
    // A step may have finished during the shutdown: this is the last chance to show it.
    const last = await unlessAway(readProgress(plan.store, run));
    if ('seen' in last) viewer.progress(last.seen);
    viewer.close();
    if (signal.aborted) return detached(context, plan, left);
    if (error instanceof WorkFailed) await tellResult(context, plan).catch(() => undefined);
    throw error;
  }
  await tellResult(context, plan);
  return EXIT.ok;
}

function detached({ output }: CommandEnvironment, { config, agentFile }: RunPlan, left: StackReleased | null): number {
  output.line(`detached from ${config.run}: ${whatGoesOn(agentFile, left)}`);
  return EXIT.interrupted;
}

function whatGoesOn(agentFile: string, left: StackReleased | null): string {
  const again = 'run the same command to continue';
  if (left === null) return again;
  if (left.others === 0) return `the local stack has ended, and finished steps are kept; ${again}`;
  if (left.agents.includes(resolve(agentFile))) return 'the run continues, because another command runs its agent';
  return `its agent's worker has ended, so the run waits; ${again} (another command keeps the local stack running)`;
}

/** Writes the report and prints the result with its path. */
async function tellResult(
  { output, project, cwd }: CommandEnvironment,
  { store, config, agentFile }: RunPlan,
): Promise<void> {
  const { defaultReportFile, writeReport } = await import('../report/write-report.ts');
  const { resultLines } = await import('../watch/result.ts');
  const progress = await readProgress(store, config.run);
  if (progress.state === null) return;
  const file = defaultReportFile(project, config.run);
  await writeReport(store, config.run, file);
  for (const line of resultLines(progress, relative(cwd, file))) output.line(line);
  if (isEnded(progress.state)) for (const line of nextLines(relative(cwd, agentFile))) output.line(line);
}

/** What to do with a run that has ended; an example is left for an agent of the user's own. */
function nextLines(agentFile: string): string[] {
  const look = 'next: npx temper ui shows the run in the browser';
  return agentFile.startsWith('examples') ? [look, 'write your own agent: npx temper init FOLDER'] : [look];
}

type AskedTargets = Readonly<Record<'track' | 'trace', readonly string[]>>;

/** Targets that a command names, or the project's. Refuses names that no target has, before anything is started. */
export async function readTargets(
  { track, trace }: AskedTargets,
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
): Promise<string[]> {
  const config = await loadConfig(project, env);
  const trackers = namesOr(track, 'track', config.track);
  const traces = namesOr(trace, 'trace', config.trace);
  for (const name of trackers) requireTracker(config, name);
  for (const name of traces) requireTrace(config, name);
  return [...new Set([...trackers, ...traces])];
}

function namesOr(
  asked: readonly string[],
  flag: keyof AskedTargets,
  configured: readonly { name: string }[],
): readonly string[] {
  if (asked.length === 0) return configured.map(({ name }) => name);
  if (!asked.includes(NONE)) return asked;
  if (asked.length === 1) return [];
  throw badConfig(`--${flag} none must stand alone, got ${asked.join(', ')}; leave none out`);
}
