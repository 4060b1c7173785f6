/** A planned run in front of a person: played to its end, or shown where it is complete. */
import { relative } from 'node:path';
import type { CommandContext } from '../command.ts';
import { engineFlags, type EngineFlags } from '../engine-flags.ts';
import { CommandFailed, EXIT } from '../errors.ts';
import { readProgress } from '../follow-run.ts';
import type { PlannedRun } from './plan-run.ts';

export async function playRun(context: CommandContext, plan: PlannedRun): Promise<number> {
  const asked = engineFlags(context.flags);
  return plan.isComplete ? showCompleted(context, plan) : play(context, plan, asked);
}

/** Needs no server: the store has it all. */
async function showCompleted(context: CommandContext, plan: PlannedRun): Promise<number> {
  const { config } = plan;
  context.output.line(`the run ${config.run} is complete; to start another run, pass --run NAME`);
  await tellResult(context, plan);
  return EXIT.ok;
}

async function play(context: CommandContext, plan: PlannedRun, asked: EngineFlags): Promise<number> {
  const { createViewer } = await import('../view/viewer.ts');
  const { playSession } = await import('./session.ts');
  const { output, project, signal, env } = context;
  const { run } = plan.config;
  const before = { state: plan.existing?.state ?? null, steps: plan.existing?.steps ?? [] };
  const viewer = createViewer(output, { run, before, hint: 'Ctrl-C stops watching; run the same command to continue' });
  try {
    await playSession({ plan, project, viewer, signal, env, ...asked });
    viewer.close();
  } catch (error) {
    // A step may have been finished while everything ended: it is told now, or nobody ever tells it.
    viewer.progress(await readProgress(plan.store, run));
    viewer.close();
    if (signal.aborted) return detached(context, run);
    if (error instanceof CommandFailed) await tellResult(context, plan).catch(() => undefined);
    throw error;
  }
  await tellResult(context, plan);
  return EXIT.ok;
}

function detached({ output }: CommandContext, run: string): number {
  output.line(
    `detached from ${run}: what this command started has ended, and nothing is lost; the same command goes on`,
  );
  return EXIT.interrupted;
}

/** The report is written at the end of every run, and named among the last lines. */
async function tellResult({ output, project, cwd }: CommandContext, { store, config }: PlannedRun): Promise<void> {
  const { defaultReportFile, writeReport } = await import('../report/write-report.ts');
  const { resultLines } = await import('../result.ts');
  const { version } = await import('../version.ts');
  const progress = await readProgress(store, config.run);
  if (progress.state === null) return;
  const file = defaultReportFile(project, config.run);
  await writeReport(store, config.run, file, version());
  for (const line of resultLines(progress, relative(cwd, file))) output.line(line);
}
