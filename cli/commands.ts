/** Every command, in the order of help. The definitions are light: each imports its work when it runs. */
import * as checkpoints from '../operations/checkpoints.ts';
import * as gc from '../operations/gc.ts';
import * as production from '../operations/production.ts';
import * as rewards from '../operations/rewards.ts';
import { runs, runsCompare } from '../operations/runs.ts';
import * as steer from '../operations/steer.ts';
import * as track from '../operations/track.ts';
import type { Command } from './command-line/command.ts';
import { toCommands } from './command-line/to-command.ts';
import { deployCommand } from './deploy/command.ts';
import { devCommand } from './dev/command.ts';
import { distillCommand } from './distill/command.ts';
import { doctorCommand } from './doctor/command.ts';
import { evalCommand } from './eval/command.ts';
import { exportCommand } from './export/command.ts';
import { gpuWorkerCommand } from './gpu-worker/command.ts';
import { initCommand } from './init/command.ts';
import { mcpCommand } from './mcp/command.ts';
import { reportCommand } from './report/command.ts';
import { scenariosCommand } from './scenarios/command.ts';
import { scheduleCommand } from './schedule/command.ts';
import { serveCommand } from './serve/command.ts';
import { reviewCommand } from './review/command.ts';
import { setupCommand } from './setup/command.ts';
import { showCommand } from './show/command.ts';
import { trainCommand } from './train/command.ts';
import { tryCommand } from './try/command.ts';
import { uiCommand } from './ui/command.ts';
import { verifyCommand } from './verify/command.ts';
import { workerCommand } from './worker/command.ts';

/** Under the headings of `temper --help`. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly Command[]>> = {
  Start: [initCommand, tryCommand, trainCommand, scheduleCommand],
  'Make data': [scenariosCommand, distillCommand],
  Look: [uiCommand, ...toCommands({ runs, runsCompare }), showCommand, reportCommand, ...toCommands(track), mcpCommand],
  Steer: toCommands(steer),
  'Use what was trained': [evalCommand, exportCommand, serveCommand, ...toCommands(production), deployCommand],
  'Take rewards from people': [...toCommands(rewards), reviewCommand],
  Operate: [
    doctorCommand,
    setupCommand,
    devCommand,
    workerCommand,
    gpuWorkerCommand,
    ...toCommands(checkpoints),
    verifyCommand,
    ...toCommands(gc),
  ],
};

export const COMMANDS: readonly Command[] = Object.values(COMMAND_GROUPS).flat();
