import type { Command } from '../command.ts';
import { cancel } from './cancel.ts';
import { checkpoints } from './checkpoints.ts';
import { dev } from './dev.ts';
import { doctor } from './doctor.ts';
import { evaluate } from './eval.ts';
import { fork } from './fork.ts';
import { gpuWorker } from './gpu-worker.ts';
import { pause } from './pause.ts';
import { report } from './report.ts';
import { resume } from './resume.ts';
import { rollback } from './rollback.ts';
import { runs } from './runs.ts';
import { schedule } from './schedule.ts';
import { set } from './set.ts';
import { show } from './show.ts';
import { stop } from './stop.ts';
import { train } from './train.ts';
import { verify } from './verify.ts';
import { watch } from './watch.ts';
import { worker } from './worker.ts';

export const COMMANDS: readonly Command[] = [
  train,
  fork,
  runs,
  show,
  watch,
  pause,
  resume,
  set,
  rollback,
  stop,
  cancel,
  report,
  schedule,
  checkpoints,
  verify,
  evaluate,
  dev,
  worker,
  gpuWorker,
  doctor,
];
