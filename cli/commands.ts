/** Every command: its definition is light, and its work is imported here, when it runs. */
import type { Flags, Surroundings } from './command-line/command.ts';
import { createCommand, createGroup, type Command } from './command-line/create-command.ts';
import { checkpointsCommand } from './checkpoints/command.ts';
import { devCommand } from './dev/command.ts';
import { distillCommand } from './distill/command.ts';
import { doctorCommand } from './doctor/command.ts';
import { evalCommand } from './eval/command.ts';
import { exportCommand } from './export/command.ts';
import { forkCommand } from './fork/command.ts';
import { gcCommand } from './gc/command.ts';
import { gpuWorkerCommand } from './gpu-worker/command.ts';
import { initCommand } from './init/command.ts';
import { reportCommand } from './report/command.ts';
import { rollbackCommand } from './rollback/command.ts';
import { runsCommand } from './runs/command.ts';
import * as schedules from './schedule/command.ts';
import { serveCommand } from './serve/command.ts';
import { SFT_PROJECT_FLAGS, sftCommand } from './sft/command.ts';
import { setCommand } from './set/command.ts';
import { setupCommand } from './setup/command.ts';
import { showCommand } from './show/command.ts';
import * as steer from './steer/command.ts';
import { trainCommand } from './train/command.ts';
import { tryCommand } from './try/command.ts';
import { verifyCommand } from './verify/command.ts';
import { watchCommand } from './watch/command.ts';
import { workerCommand } from './worker/command.ts';

const describeRunFlags = async (flags: Flags) =>
  (await import('./planning/describe-run-flags.ts')).describeRunFlags(flags);
const describeForkFlags = async () => (await import('./planning/describe-run-flags.ts')).describeForkFlags();
const loadProjectFlags = async (surroundings: Surroundings) =>
  (await import('./planning/project-flags.ts')).readProjectFlags(surroundings);
const loadSftFlags = async (surroundings: Surroundings) =>
  (await import('./planning/project-flags.ts')).readProjectFlags(surroundings, SFT_PROJECT_FLAGS);
const loadSchedule = () => import('./schedule/schedule.ts');
const loadSteer = () => import('./steer/steer.ts');
const loadScheduleFire = () => import('./schedule/schedule-fire.ts');

const SCHEDULE_ACTIONS: readonly Command[] = [
  createCommand({
    ...schedules.scheduleCreateCommand,
    load: async () => (await import('./schedule/schedule-create.ts')).scheduleCreate,
    loadProjectFlags,
    loadDescriptions: describeRunFlags,
  }),
  createCommand({ ...schedules.scheduleListCommand, load: async () => (await loadSchedule()).scheduleList }),
  createCommand({ ...schedules.scheduleShowCommand, load: async () => (await loadSchedule()).scheduleShow }),
  createCommand({ ...schedules.schedulePauseCommand, load: async () => (await loadSchedule()).schedulePause }),
  createCommand({ ...schedules.scheduleResumeCommand, load: async () => (await loadSchedule()).scheduleResume }),
  createCommand({ ...schedules.scheduleTriggerCommand, load: async () => (await loadScheduleFire()).scheduleTrigger }),
  createCommand({
    ...schedules.scheduleBackfillCommand,
    load: async () => (await loadScheduleFire()).scheduleBackfill,
  }),
  createCommand({ ...schedules.scheduleDeleteCommand, load: async () => (await loadSchedule()).scheduleDelete }),
];

export const COMMANDS: readonly Command[] = [
  createCommand({ ...initCommand, load: async () => (await import('./init/init.ts')).init }),
  createCommand({
    ...trainCommand,
    load: async () => (await import('./train/train.ts')).train,
    loadProjectFlags,
    loadDescriptions: describeRunFlags,
  }),
  createCommand({
    ...sftCommand,
    load: async () => (await import('./sft/sft.ts')).sft,
    loadProjectFlags: loadSftFlags,
    loadDescriptions: describeRunFlags,
  }),
  createCommand({ ...distillCommand, load: async () => (await import('./distill/distill.ts')).distillRun }),
  createCommand({
    ...forkCommand,
    load: async () => (await import('./fork/fork.ts')).fork,
    loadDescriptions: describeForkFlags,
  }),
  createCommand({ ...runsCommand, load: async () => (await import('./runs/runs.ts')).runs }),
  createCommand({ ...showCommand, load: async () => (await import('./show/show.ts')).show }),
  createCommand({ ...watchCommand, load: async () => (await import('./watch/watch.ts')).watch }),
  createCommand({ ...steer.pauseCommand, load: async () => (await loadSteer()).pause }),
  createCommand({ ...steer.resumeCommand, load: async () => (await loadSteer()).resume }),
  createCommand({ ...setCommand, load: async () => (await import('./set/set.ts')).set }),
  createCommand({ ...rollbackCommand, load: async () => (await import('./rollback/rollback.ts')).rollback }),
  createCommand({ ...steer.stopCommand, load: async () => (await loadSteer()).stop }),
  createCommand({ ...steer.cancelCommand, load: async () => (await loadSteer()).cancel }),
  createCommand({ ...reportCommand, load: async () => (await import('./report/report.ts')).report }),
  createGroup(schedules.scheduleGroup, SCHEDULE_ACTIONS),
  createCommand({
    ...checkpointsCommand,
    load: async () => (await import('./checkpoints/checkpoints.ts')).checkpoints,
  }),
  createCommand({ ...gcCommand, load: async () => (await import('./gc/gc.ts')).gc }),
  createCommand({ ...verifyCommand, load: async () => (await import('./verify/verify.ts')).verify }),
  createCommand({ ...tryCommand, load: async () => (await import('./try/try.ts')).tryAgent }),
  createCommand({ ...evalCommand, load: async () => (await import('./eval/eval.ts')).evaluate }),
  createCommand({ ...exportCommand, load: async () => (await import('./export/export.ts')).exportPolicy }),
  createCommand({ ...serveCommand, load: async () => (await import('./serve/serve.ts')).serve }),
  createCommand({ ...devCommand, load: async () => (await import('./dev/dev.ts')).dev }),
  createCommand({ ...workerCommand, load: async () => (await import('./worker/worker.ts')).worker }),
  createCommand({ ...gpuWorkerCommand, load: async () => (await import('./gpu-worker/gpu-worker.ts')).serveAndTrain }),
  createCommand({ ...setupCommand, load: async () => (await import('./setup/setup.ts')).setup }),
  createCommand({
    ...doctorCommand,
    load: async () => (await import('./doctor/doctor.ts')).doctor,
    loadDescriptions: describeRunFlags,
  }),
];
