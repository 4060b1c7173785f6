import type { Command } from './command-line/command.ts';
import { cancel } from './cancel/cancel.ts';
import { checkpoints } from './checkpoints/checkpoints.ts';
import { dev } from './dev/dev.ts';
import { doctor } from './doctor/doctor.ts';
import { evaluate } from './eval/eval.ts';
import { fork } from './fork/fork.ts';
import { gpuWorker } from './gpu-worker/gpu-worker.ts';
import { pause } from './pause/pause.ts';
import { report } from './report/report.ts';
import { resume } from './resume/resume.ts';
import { rollback } from './rollback/rollback.ts';
import { runs } from './runs/runs.ts';
import { schedule } from './schedule/schedule.ts';
import { set } from './set/set.ts';
import { show } from './show/show.ts';
import { stop } from './stop/stop.ts';
import { train } from './train/train.ts';
import { verify } from './verify/verify.ts';
import { watch } from './watch/watch.ts';
import { worker } from './worker/worker.ts';

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
